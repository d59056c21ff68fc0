"""Name -> module in a folder. Only the module that is asked for is imported, so a device needs only what it uses."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from edge.errors import ConfigError


def names(package: str) -> list[str]:
    """List the plug-ins in `package` (dotted name).

    They are its modules, less `base`, those with a leading underscore and those that the package lists in `HELPERS`.
    """
    folder = importlib.import_module(package)
    helpers = {"base", *getattr(folder, "HELPERS", ())}
    return sorted(
        m.name for m in pkgutil.iter_modules(folder.__path__) if m.name not in helpers and not m.name.startswith("_")
    )


def load(package: str, name: str, *, setting: str) -> ModuleType:
    """Import plug-in `name` of `package`.

    Parameters
    ----------
    package : str
        Dotted name of the folder, e.g. ``"edge.backends"``.
    name : str
        The module's name in it.
    setting : str
        The setting that named it, for the error.

    Raises
    ------
    ConfigError
        If there is no such plug-in.
    """
    known = names(package)
    if name not in known:
        raise ConfigError(setting, f"there is no {name!r}", expected="one of " + ", ".join(known))
    return importlib.import_module(f"{package}.{name}")

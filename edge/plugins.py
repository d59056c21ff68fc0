"""Name -> module in a folder. Only the module that is asked for is imported, so a device needs only what it uses."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from edge.errors import ConfigError


def names(package: str) -> list[str]:
    """List the plug-ins in `package` (dotted name): its modules, less `base` and those with a leading underscore."""
    modules = [module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)]
    return sorted(name for name in modules if name != "base" and not name.startswith("_"))


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

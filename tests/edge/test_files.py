"""Files are whole or not there, and what stops them is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from edge.errors import SinkError
from edge.files import atomic_folder, atomic_path, check_target, decode_document
from edge.keys import write_secret


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=["disk", "quota"])
def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, code):
    for atomic in (lambda: atomic_path(tmp_path / "x.csv"), lambda: atomic_folder(tmp_path / "x.csv", "m")):
        with pytest.raises(SinkError, match=rf"x\.csv: can't be written: {os.strerror(code)}"), atomic():
            raise OSError(code, os.strerror(code))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_replaced_comes_back_if_the_program_ends_meanwhile(tmp_path, monkeypatch):
    folder, replace = tmp_path / "cache", Path.replace
    folder.mkdir()
    (folder / "m").write_text("old")

    def ended(self, target):
        if self.name.endswith(".part"):
            raise SystemExit(143)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", ended)
    with pytest.raises(SystemExit), atomic_folder(folder, "m") as part:
        (part / "m").write_text("new")
    assert (folder / "m").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_what_a_killed_process_left_stops_nobody(tmp_path):
    """In a container each process has the same number."""
    for left in (f".cache.{os.getpid()}.part", f".cache.{os.getpid()}.old", f".x.key.{os.getpid()}.part"):
        (tmp_path / left).mkdir()
    with atomic_folder(tmp_path / "cache", "m") as part:
        (part / "m").touch()
    write_secret(tmp_path / "x.key", b"1")
    assert (tmp_path / "cache" / "m").exists() and (tmp_path / "x.key").exists()


def test_other_errors_of_the_work_stay_what_they_are(tmp_path):
    with pytest.raises(PermissionError), atomic_path(tmp_path / "x"):
        raise PermissionError(errno.EACCES, "not yours")


def test_a_target_below_a_file_is_refused_by_name(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file/x.mp4", "file/folder/x.mp4"):
        with pytest.raises(SinkError, match="file is a file, not a folder"):
            check_target(tmp_path / name)
    check_target(tmp_path / "new" / "x.mp4")
    with pytest.raises(SinkError, match="File name too long"):
        check_target(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, "{", b"\xff"], ids=["list", "map", "cut", "bytes"]
)
def test_what_cannot_be_decoded_is_a_value_error(content):
    with pytest.raises(ValueError):
        decode_document(content)

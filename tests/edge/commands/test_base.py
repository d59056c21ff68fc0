"""Progress off a terminal: a line a minute on stderr, and nothing of what is soon done."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator

import pytest

from edge.commands.base import new_app, progress, run


@pytest.mark.parametrize(
    ("step_s", "total", "lines"),
    [(25.0, None, ["work: 2 of 6", "work: 5 of 6"]), (1.0, None, []), (70.0, 2, ["work: 0 of 2", "work: 1 of 2"])],
    ids=["every-minute", "soon-done", "total-given"],
)
def test_lines(capsys: pytest.CaptureFixture[str], step_s: float, total: int | None, lines: list[str]) -> None:
    now = iter(range(1000))
    items: list[int] | Iterator[int] = list(range(6)) if total is None else iter(range(total))
    given = list(progress(items, "work", total, clock=lambda: step_s * next(now)))
    assert given == list(range(total or 6))
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENAMETOOLONG, "File name too long", "xxx.mp4"), "t: xxx.mp4: File name too long\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "t: output: No space left on device\n"),
        (
            UnicodeEncodeError("utf-8", '{"source": "d/\udcfc.mp4"}', 14, 15, "surrogates not allowed"),
            't: \'{"source": "d/\\udcfc.mp4"}\': is no UTF-8; rename the file or folder\n',
        ),
        (ValueError("a bug"), None),
    ],
    ids=["named", "full", "name", "bug"],
)
def test_what_the_system_refuses_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, line: str | None
) -> None:
    app = new_app("t", "A test.")

    @app.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["t"])
    with pytest.raises(SystemExit if line else type(error)):
        run(app, "t")
    assert capsys.readouterr().err == (line or "")


def test_a_name_that_the_terminal_cannot_show_is_said_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    app, terminal = new_app("t", "A test."), io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    app.command()(lambda: print("ü.mp4"))
    monkeypatch.setattr(sys, "argv", ["t"])
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(SystemExit, match="0"):
        run(app, "t")
    assert terminal.buffer.getvalue() == b"\\xfc.mp4\n"  # type: ignore[attr-defined]

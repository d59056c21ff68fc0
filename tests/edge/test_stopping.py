"""What SIGINT and SIGTERM do: a run stops where it can end well, other work ends with one line."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from edge.commands.base import new_app
from edge.stopping import exit_on_signals, stop_on_signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_the_first_signal_asks_and_the_second_interrupts(number: int, code: int) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert (stop.name, stop.exit_code) == ("", 0)
        signal.raise_signal(number)
        assert stop.event.is_set()
        assert (stop.name, stop.exit_code) == (signal.Signals(number).name, code)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_a_signal_ends_a_command_with_one_line(capsys: pytest.CaptureFixture[str], number: int, code: int) -> None:
    app, before = new_app("t", ""), signal.getsignal(number)
    app.command()(lambda: signal.raise_signal(number))
    with pytest.raises(SystemExit, match=str(code)), exit_on_signals("emogaze"):
        app([])
    said = f"emogaze: ended early by {signal.Signals(number).name}; what was not finished is not there\n"
    assert capsys.readouterr().err == said
    assert signal.getsignal(number) is before


def test_a_command_that_takes_sigint_for_its_end_says_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    with exit_on_signals("emogaze"), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == ""

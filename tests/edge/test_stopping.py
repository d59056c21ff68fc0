"""What SIGINT and SIGTERM do: a run stops where it can end well, other work ends with one line."""

from __future__ import annotations

import signal

import pytest

from edge.stopping import exit_on_sigterm, stop_on_signals


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


def test_sigterm_ends_a_command_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="143"), exit_on_sigterm("emogaze"):
        signal.raise_signal(signal.SIGTERM)
    assert capsys.readouterr().err == "emogaze: ended early by SIGTERM; what was not finished is not there\n"

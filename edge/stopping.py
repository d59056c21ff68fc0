"""SIGINT and SIGTERM: what ends a run, so that it stops where it can end well."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Whether somebody asked for an end: `event` is set, and `name` is the signal's, such as SIGTERM."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.name = ""

    @property
    def exit_code(self) -> int:
        """Return what a shell expects of a process that a signal ended; 0 where none did."""
        return 128 + signal.Signals[self.name] if self.name else 0


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Give what SIGINT and SIGTERM set; a second one interrupts whatever is under way."""
    stop = StopSignal()

    def handle(number: int, _: object) -> None:
        if stop.name:
            raise KeyboardInterrupt
        stop.name = signal.Signals(number).name
        stop.event.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def exit_on_signals(name: str) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the program like an error: what is half written is removed, and one line says so.

    A command that waits for SIGINT may catch the KeyboardInterrupt, and ends as it likes.
    """
    came: list[int] = []

    def handle(number: int, _: object) -> None:
        came.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as end:
        code = 128 + came[0] if came else 0
        if not code or getattr(end, "code", code) != code:
            raise
        signal_name = signal.Signals(came[0]).name
        print(f"{name}: ended early by {signal_name}; what was not finished is not there", file=sys.stderr)
        sys.exit(code)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

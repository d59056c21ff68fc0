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
def exit_on_sigterm(name: str) -> Iterator[None]:
    """Let SIGTERM end the program like an error: what is half written is removed, and one line says what happened."""

    def handle(number: int, _: object) -> None:
        print(f"{name}: ended early by SIGTERM; what was not finished is not there", file=sys.stderr)
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

"""A file that encrypts what is written to it, for outputs that aren't sessions: an event log, a clip."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Collection
from typing import Any, BinaryIO

SUFFIX = ".age"


class CipherFile(io.RawIOBase):
    """Write-only and not seekable: age v1, encrypted to `recipients`, by a thread behind a pipe.

    `output`, unbuffered, is closed with it.

    Raises
    ------
    OSError
        On `write` and `close`: it can't be written.
    """

    def __init__(self, output: BinaryIO, recipients: Collection[str]) -> None:
        super().__init__()
        self._output = output
        source, sink = os.pipe()
        self._source, self._sink = os.fdopen(source, "rb"), os.fdopen(sink, "wb", buffering=0)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._encrypt, args=(list(recipients),), name="age", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        """Encrypt all of `block`, any buffer of bytes."""
        view = memoryview(block).cast("B")
        try:
            done = 0
            while done < len(view):
                done += self._sink.write(view[done:])
        except BrokenPipeError:
            raise self._as_os_error() from None
        return len(view)

    def close(self) -> None:
        """End the file; it is synced when this returns. May be called twice."""
        if self.closed:
            return
        super().close()
        self._sink.close()
        self._thread.join()
        if self._error is not None:
            raise self._as_os_error()

    def _encrypt(self, recipients: list[str]) -> None:
        from pyrage import encrypt_io, x25519

        try:
            encrypt_io(self._source, self._output, [x25519.Recipient.from_str(text) for text in recipients])
            os.fsync(self._output.fileno())
        except Exception as error:  # noqa: BLE001 - kept for the thread that writes
            self._error = error
        finally:
            self._source.close()
            self._output.close()

    def _as_os_error(self) -> OSError:
        return self._error if isinstance(self._error, OSError) else OSError(5, f"encryption failed: {self._error}")

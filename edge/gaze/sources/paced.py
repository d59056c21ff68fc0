"""A gaze recording played as if it were live (``paced:FILE``): each sample comes at its time, on the host's clock.

Any other plug-in reads the file. ``paced:FILE?loop`` begins again at the end.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from edge.clock import Clock, monotonic_ns
from edge.config import GazeConfig
from edge.errors import ConfigError
from edge.gaze.recorded import RecordedGaze
from edge.gaze.sources import open_gaze
from edge.gaze.sources.base import GazeSource
from edge.records import RawGaze

PREFIX, LOOP = "paced:", "?loop"


def matches(source: str) -> bool:
    """Whether `source` asks for a recording to be played as if live."""
    return source.startswith(PREFIX)


def open_source(gaze: GazeConfig) -> GazeSource:
    """Open the recording; its first sample is due now. Errors as the recording's own."""
    path = gaze.source.removeprefix(PREFIX).removesuffix(LOOP)
    recording = msgspec.structs.replace(gaze, source=path, format="")
    opened = open_gaze(recording)
    if not isinstance(opened, RecordedGaze):
        opened.close()
        raise ConfigError(gaze.source, "is no recording", expected=f"{PREFIX}FILE")
    return PacedGaze(opened, recording if gaze.source.endswith(LOOP) else None)


class PacedGaze(GazeSource):
    """Shifts a recording's times onto the host's clock and holds samples back until they are due.

    Parameters
    ----------
    recording : RecordedGaze
        What is played.
    again : GazeConfig, optional
        What to open at its end; None = end there.
    """

    def __init__(self, recording: RecordedGaze, again: GazeConfig | None = None, clock: Clock = monotonic_ns) -> None:
        self._again, self._clock = again, clock
        self._seq = 0
        self.info = replace(recording.info, live=True)
        self.geometry = recording.geometry
        self._play(recording, clock())

    def read_until(self, t_ns: int) -> list[RawGaze]:
        """Return the samples that are due by now and at most at `t_ns`."""
        until_ns = min(t_ns, self._clock())
        samples = self._shifted(until_ns)
        if self._recording.ended and self._again is not None:
            opened = open_gaze(self._again)
            if isinstance(opened, RecordedGaze):
                self._play(opened, self._end_ns)
                samples += self._shifted(until_ns)
        return samples

    @property
    def ended(self) -> bool:
        return self._recording.ended and self._again is None

    def close(self) -> None:
        self._again = None
        self._recording.close()

    def _play(self, recording: RecordedGaze, start_ns: int) -> None:
        first_ns, last_ns = recording.span_ns
        period_ns = round(1e9 / self.info.hz_declared) if self.info.hz_declared else 1
        self._recording, self._shift_ns = recording, start_ns - first_ns
        self._end_ns = start_ns + last_ns - first_ns + period_ns

    def _shifted(self, until_ns: int) -> list[RawGaze]:
        samples = self._recording.read_until(until_ns - self._shift_ns)
        shifted = [replace(s, seq=self._seq + i, t_ns=s.t_ns + self._shift_ns) for i, s in enumerate(samples)]
        self._seq += len(samples)
        return shifted

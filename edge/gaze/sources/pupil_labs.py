"""Live gaze of a Pupil Labs Neon over its real-time network API: `pupil-labs:HOST` or `pupil-labs:HOST:PORT`.

Needs the extra `neon`. The companion app can stream over LSL as well, which needs nothing and loses no sample to a busy
host; this source adds the camera's own intrinsics. Gaze is in pixels of the scene camera. The phone stamps samples with
Unix time; its Time Echo service tells how far that clock is from this host's, again every minute. Written against the
API's documentation and tested with a scripted device; not yet tried on glasses.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from edge.clock import NS_PER_S, Clock, monotonic_ns, session_epoch
from edge.config import GazeConfig
from edge.errors import AbsentError, ConfigError, SourceError
from edge.gaze.geometry import Camera, Geometry, read_geometry
from edge.gaze.sources.base import GazeInfo, GazeSource, StreamNote
from edge.gaze.sources.neon import NOMINAL, SCENE_SIZE
from edge.records import NAN, RawGaze

PREFIX, PORT = "pupil-labs:", 8080
BUFFER = 20_000
RECEIVE_S, REOPEN_S, OFFSET_S = 0.1, 3.0, 60.0


class Glasses(Protocol):
    """What is used of `pupil_labs.realtime_api.simple.Device`."""

    def receive_gaze_datum(self, timeout_seconds: float | None = None) -> Any: ...

    def estimate_time_offset(self) -> Any: ...

    def get_calibration(self) -> Any: ...

    def close(self) -> None: ...


def matches(source: str) -> bool:
    """Whether `source` names glasses on the network."""
    return source.startswith(PREFIX)


def open_source(gaze: GazeConfig) -> PupilLabsGaze:
    """Connect to the companion phone and begin to receive.

    Raises
    ------
    AbsentError
        No phone answers there.
    SourceError
        The client library isn't installed.
    """
    return PupilLabsGaze(gaze, connect)


def connect(source: str) -> Glasses:
    """Return the device at `pupil-labs:HOST[:PORT]`."""
    import asyncio

    try:
        from aiohttp import ClientError
        from pupil_labs.realtime_api.device import DeviceError
        from pupil_labs.realtime_api.simple import Device
    except ImportError:
        raise SourceError(source, "needs the real-time client", fix="pip install 'emogaze-edge[neon]'") from None
    host, _, port = source.removeprefix(PREFIX).partition(":")
    if not host or (port and not port.isdigit()):
        raise ConfigError(source, "names no device", expected=f"{PREFIX}HOST or {PREFIX}HOST:PORT")

    class Phone(Device):  # type: ignore[misc]  # untyped where the client isn't installed
        _event_manager = None  # where the phone isn't there, the end of the half-made object looks for it

    try:
        device: Glasses = Phone(host, int(port or PORT))
    except (OSError, asyncio.TimeoutError, DeviceError) as error:
        raise AbsentError(source, f"no companion phone answers: {error}") from error
    except ClientError as error:
        raise SourceError(source, f"answers, but is no companion phone: {error}") from error
    return device


class PupilLabsGaze(GazeSource):
    """Gaze of the glasses behind the contract, received in a thread of its own.

    Parameters
    ----------
    gaze : GazeConfig
        Its `source` names the phone.
    connect : callable
        Opens the device, here and again after a loss.
    """

    def __init__(self, gaze: GazeConfig, connect: Callable[[str], Glasses], clock: Clock = monotonic_ns) -> None:
        self._source, self._connect, self._clock = gaze.source, connect, clock
        self._shift_ns = round(gaze.offset_ms * 1e6)
        self._samples: deque[RawGaze] = deque(maxlen=BUFFER)
        self._notes: deque[StreamNote] = deque(maxlen=1000)
        self._seq = self._to_host_ns = self._offset_read_ns = 0
        self._stop = threading.Event()
        self._monocular = False
        self._device: Glasses | None = connect(gaze.source)
        camera = camera_of(self._device.get_calibration())
        self.geometry = read_geometry(gaze.geometry) or Geometry(camera=camera)
        note = "intrinsics: nominal" if self.geometry.nominal else ""
        self.info = GazeInfo(
            gaze.source, "scene_px", "px", "top-left", live=True, hz_declared=0.0, device="Pupil Labs", note=note
        )
        self._read_offset(self._device)
        self._thread = threading.Thread(target=self._run, name=gaze.source, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return self._stop.is_set()

    def read_until(self, t_ns: int) -> list[RawGaze]:
        """Return all samples that have arrived, whatever `t_ns`."""
        return [self._samples.popleft() for _ in range(len(self._samples))]

    def notes(self) -> list[StreamNote]:
        return [self._notes.popleft() for _ in range(len(self._notes))]

    def close(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _run(self) -> None:
        heard_ns = self._clock()
        while not self._stop.is_set():
            if self._device is None:
                self._reopen()
                heard_ns = self._clock()
                continue
            datum = self._device.receive_gaze_datum(timeout_seconds=RECEIVE_S)
            now_ns = self._clock()
            if datum is not None:
                heard_ns = now_ns
                self._samples.append(self._raw(datum))
            elif now_ns - heard_ns > REOPEN_S * NS_PER_S:
                self._note("silent", {"for_ms": (now_ns - heard_ns) / 1e6})
                self._device.close()
                self._device = None
            if self._device is not None and now_ns - self._offset_read_ns > OFFSET_S * NS_PER_S:
                self._read_offset(self._device)
        if self._device is not None:
            self._device.close()

    def _reopen(self) -> None:
        try:
            self._device = self._connect(self._source)
        except AbsentError:
            self._stop.wait(0.5)
            return
        self._read_offset(self._device)
        self._note("back", {})

    def _read_offset(self, device: Glasses) -> None:
        """Learn what turns the phone's Unix time into this host's monotonic time."""
        estimate = device.estimate_time_offset()
        host_ns, unix_ns = session_epoch()
        echo_ms = 0.0 if estimate is None else float(estimate.time_offset_ms.median)
        self._to_host_ns = host_ns - unix_ns + round(echo_ms * 1e6)
        self._offset_read_ns = self._clock()
        detail = {"seconds": echo_ms / 1000} if estimate else {"unknown": "the app is too old: clocks as they are"}
        self._note("time_correction", detail)

    def _raw(self, datum: Any) -> RawGaze:
        """Return a sample; of two monocular gazes (a setting of the app) neither is the gaze, so it is invalid."""
        pupils = [getattr(datum, f"pupil_diameter_{side}", NAN) for side in ("left", "right")]
        seq, self._seq = self._seq, self._seq + 1
        t_ns = round(datum.timestamp_unix_seconds * NS_PER_S) + self._to_host_ns + self._shift_ns
        x, y = float(getattr(datum, "x", NAN)), float(getattr(datum, "y", NAN))
        if not hasattr(datum, "x") and not self._monocular:
            self._monocular = True
            self._note("monocular", {"consequence": "no gaze: let the app give binocular gaze"})
        valid = bool(datum.worn) and math.isfinite(x) and math.isfinite(y)
        return RawGaze(seq, t_ns, x, y, 1.0, valid, sum(pupils) / 2)

    def _note(self, kind: str, detail: dict[str, Any]) -> None:
        self._notes.append(StreamNote(self._clock(), kind, {"stream": self._source, **detail}))


def camera_of(calibration: Any) -> Camera:
    """Return the scene camera's intrinsics from the device's calibration; nominal ones where it has none."""
    matrix = getattr(calibration, "scene_camera_matrix", None)
    if matrix is None:
        return NOMINAL
    fx, fy, cx, cy = (float(matrix[i][j]) for i, j in ((0, 0), (1, 1), (0, 2), (1, 2)))
    distortion = tuple(float(v) for v in calibration.scene_distortion_coefficients)
    width, height = SCENE_SIZE
    return Camera(width_px=width, height_px=height, fx=fx, fy=fy, cx=cx, cy=cy, distortion=distortion).complete()

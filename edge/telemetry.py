"""The state of the machine: battery, temperature, power, mode, load. What can't be read is unknown, never 0.

A recording's telemetry comes from a file or is absent; a live run reads the kernel's files, and on a Jetson what
`jtop` (jetson-stats) or `tegrastats` say.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from edge.clock import NS_PER_MS, NS_PER_S
from edge.config import TelemetryConfig
from edge.errors import SourceError
from edge.files import decode_document
from edge.records import Telemetry

_PLAUSIBLE_C = (-40.0, 150.0)  #: zones that are switched off report -256
_FIXED_ZONES = ("PMIC", "Tdiode")  #: zones of some boards that don't follow the load


class TelemetrySource(ABC):
    """Where telemetry comes from. Use as a context manager."""

    @abstractmethod
    def at(self, t_ns: int) -> Telemetry | None:
        """Return what is known at a time, or None where there is nothing yet."""

    def close(self) -> None:  # noqa: B027 - most have nothing to free
        """Free the source. May be called twice."""

    def __enter__(self) -> TelemetrySource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_telemetry(settings: TelemetryConfig, *, live: bool) -> TelemetrySource | None:
    """Open the configured source: a file, `system`, or none.

    Raises
    ------
    SourceError
        The file can't be read, or a recording asks for this machine's telemetry, which isn't its own.
    """
    if not settings.source:
        return None
    if settings.source != "system":
        return FileTelemetry(Path(settings.source))
    if not live:
        fix = "name a telemetry file, or leave it empty"
        raise SourceError("telemetry.source", "a recording has no telemetry of this machine", fix=fix)
    return SystemTelemetry(period_ns=settings.period_ms * NS_PER_MS)


class _Row(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One line of a telemetry file."""

    t_s: float
    battery_percent: float | None = None
    charging: bool | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_mode: str | None = None
    load_percent: float | None = None


_rows = msgspec.json.Decoder(_Row)


class FileTelemetry(TelemetrySource):
    """Telemetry of a recording: one JSON object per line, `t_s` and any of the fields of `Telemetry`, in time order.

    Raises
    ------
    SourceError
        The file is missing, a line can't be read, or times go back.
    """

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise SourceError(f"telemetry {path}", f"can't be read: {error.strerror}") from error
        self._rows: list[Telemetry] = []
        for number, line in enumerate(lines, start=1):
            try:
                row = decode_document(line, _rows.decode)
            except msgspec.DecodeError as error:
                raise SourceError(f"telemetry {path}, line {number}", f"can't be read: {error}") from error
            values = msgspec.structs.asdict(row)
            t_ns = round(values.pop("t_s") * NS_PER_S)
            if self._rows and t_ns < self._rows[-1].t_ns:
                raise SourceError(f"telemetry {path}, line {number}", "its time is before the line above")
            self._rows.append(Telemetry(t_ns, **values))

    def at(self, t_ns: int) -> Telemetry | None:
        known = bisect_right(self._rows, t_ns, key=lambda row: row.t_ns)
        return self._rows[known - 1] if known else None


class SystemTelemetry(TelemetrySource):
    """Telemetry of this machine, read anew once it is older than `period_ns`.

    What a board says of its temperature, power and mode (jtop, else tegrastats) wins over the kernel's files.

    Parameters
    ----------
    period_ns : int
    sys, proc : Path
        Where the kernel's files are.
    """

    def __init__(self, *, period_ns: int, sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> None:
        self._period_ns, self._sys, self._proc = period_ns, sys, proc
        self._board = open_board()
        self._last: Telemetry | None = None
        self._cpu: tuple[int, int] | None = None

    def at(self, t_ns: int) -> Telemetry | None:
        last = self._last
        if last is None or not 0 <= t_ns - last.t_ns < self._period_ns:
            self._last = last = self._read(t_ns)
        return last

    def close(self) -> None:
        if self._board is not None:
            self._board.close()

    def _read(self, t_ns: int) -> Telemetry:
        percent, charging, power_w = read_battery(self._sys / "class/power_supply")
        temperature = read_temperature(self._sys / "class/thermal")
        mode = _text(self._sys / "firmware/acpi/platform_profile")
        kernel = Telemetry(t_ns, percent, charging, temperature, power_w, mode, self._load())
        board = self._board.at(t_ns) if self._board is not None else None
        if board is None:
            return kernel
        known = {name: getattr(board, name) for name in ("temperature_c", "power_w", "power_mode")}
        return replace(kernel, **{name: value for name, value in known.items() if value is not None})

    def _load(self) -> float | None:
        """Return the share of processor time used since the reading before, in percent."""
        words = (_text(self._proc / "stat") or "").split("\n")[0].split()[1:]
        if len(words) < 5:
            return None
        times = [int(word) for word in words[:8]]
        now = sum(times), times[3] + times[4]  # all, idle with waiting
        before, self._cpu = self._cpu, now
        if before is None or now[0] <= before[0]:
            return None
        return 100.0 * (1.0 - (now[1] - before[1]) / (now[0] - before[0]))


def read_battery(folder: Path) -> tuple[float | None, bool | None, float | None]:
    """Return charge (percent), whether it charges, and the power drawn (W) of the machine's own batteries.

    Batteries of peripherals (`scope` is Device) are not the machine's. Several batteries count by what they hold.
    """
    charges, weights, states, power = [], [], [], []
    for supply in sorted(folder.glob("*")):
        if _text(supply / "type") != "Battery" or _text(supply / "scope") == "Device":
            continue
        percent = _number(supply / "capacity")
        if percent is not None and 0 <= percent <= 100:
            charges.append(percent)
            full = _number(supply / "energy_full") or _number(supply / "charge_full")
            weights.append(full if full and full > 0 else 1.0)
        states.append(_text(supply / "status"))
        watts = _watts(supply)
        if watts is not None:
            power.append(watts)
    known = [state for state in states if state not in (None, "Unknown")]
    charging = any(state in ("Charging", "Full") for state in known) if known else None
    charge = sum(c * w for c, w in zip(charges, weights, strict=True)) / sum(weights) if charges else None
    return charge, charging, sum(power) if power else None


def read_temperature(folder: Path) -> float | None:
    """Return the hottest plausible thermal zone in degrees Celsius, or None."""
    values = []
    for zone in sorted(folder.glob("thermal_zone*")):
        value = _number(zone / "temp")
        fixed = (_text(zone / "type") or "").startswith(_FIXED_ZONES)
        if value is not None and not fixed and _PLAUSIBLE_C[0] < value / 1000 < _PLAUSIBLE_C[1]:
            values.append(value / 1000)
    return max(values, default=None)


def _watts(supply: Path) -> float | None:
    """Return the power of a supply in W: files are in microwatt, microampere and microvolt."""
    power = _number(supply / "power_now")
    if power is not None:
        return abs(power) / 1e6
    current, voltage = _number(supply / "current_now"), _number(supply / "voltage_now")
    return abs(current * voltage) / 1e12 if current is not None and voltage is not None else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> float | None:
    try:
        return float(_text(path) or "")
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Tegrastats:
    """One line of `tegrastats`; None where the line doesn't hold it. `power_w` is the whole board's, where given."""

    mem_used_mb: int | None
    mem_total_mb: int | None
    cpu_percent: float | None
    gpu_percent: int | None
    temperature_c: float | None
    gpu_power_w: float | None
    power_w: float | None


_RAM = re.compile(r"\bRAM (\d+)/(\d+)MB")
_CPU = re.compile(r"\bCPU \[([^\]]*)\]")
_GPU = re.compile(r"\bGR3D_FREQ (\d+)%")
_TEMPERATURE = re.compile(r"\b([A-Za-z]\w*)@(-?\d+(?:\.\d+)?)C\b")
_RAIL = re.compile(r"\b((?:VDD|VIN|POM)_\w+) (\d+)(?:mW)?(?:/\d+(?:mW)?)?(?=\s|$)")
_TOTAL_RAILS = ("VDD_IN", "VIN_SYS_5V0", "POM_5V_IN")


def parse_tegrastats(line: str) -> Tegrastats:
    """Read a line of `tegrastats`, of old boards (no unit at the rails) and new ones.

    The temperature is that of the junction (`tj`), else of the GPU. A rail whose name has GPU in it is the GPU's, also
    where it is shared with others.
    """
    ram, cpu, gpu = _RAM.search(line), _CPU.search(line), _GPU.search(line)
    loads = [float(core.split("%")[0]) for core in cpu[1].split(",") if "%" in core] if cpu else []
    zones = {name.lower(): float(value) for name, value in _TEMPERATURE.findall(line)}
    zones = {name: value for name, value in zones.items() if _PLAUSIBLE_C[0] < value < _PLAUSIBLE_C[1]}
    rails = {name: int(milliwatt) / 1000 for name, milliwatt in _RAIL.findall(line)}
    return Tegrastats(
        mem_used_mb=int(ram[1]) if ram else None,
        mem_total_mb=int(ram[2]) if ram else None,
        cpu_percent=sum(loads) / len(loads) if loads else None,
        gpu_percent=int(gpu[1]) if gpu else None,
        temperature_c=zones.get("tj", zones.get("gpu")),
        gpu_power_w=next((watt for name, watt in rails.items() if "GPU" in name), None),
        power_w=next((rails[name] for name in _TOTAL_RAILS if name in rails), None),
    )


def open_board() -> TelemetrySource | None:
    """Return what a Jetson says of itself: jtop where its service answers, else tegrastats, else None."""
    with contextlib.suppress(Exception):  # jtop raises its own kinds where its service doesn't run
        from jtop import jtop

        board = jtop()
        board.start()
        return Jtop(board)
    program = shutil.which("tegrastats")
    return TegrastatsProcess([program, "--interval", "1000"]) if program else None


class Jtop(TelemetrySource):
    """A running `jtop` client (package jetson-stats)."""

    def __init__(self, board: Any) -> None:
        self._board = board

    def at(self, t_ns: int) -> Telemetry | None:
        mode = getattr(self._board.nvpmodel, "name", None)
        return jtop_telemetry(t_ns, self._board.temperature, self._board.power, mode)

    def close(self) -> None:
        self._board.close()


def jtop_telemetry(t_ns: int, temperature: Mapping, power: Mapping, mode: str | None) -> Telemetry:
    """Return what jtop's `temperature` ({name: {temp, online}}), `power` ({tot: {power: mW}}) and mode say."""
    zones = {str(n).lower(): z["temp"] for n, z in temperature.items() if z.get("online", True) and "temp" in z}
    milliwatt = power.get("tot", {}).get("power")
    return Telemetry(
        t_ns,
        temperature_c=zones.get("tj", max(zones.values(), default=None)),
        power_w=milliwatt / 1000 if milliwatt is not None else None,
        power_mode=mode or None,
    )


class TegrastatsProcess(TelemetrySource):
    """A running `tegrastats`, whose newest line counts."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._newest: Tegrastats | None = None
        self._reader = threading.Thread(target=self._read, name="tegrastats", daemon=True)
        self._reader.start()

    def at(self, t_ns: int) -> Telemetry | None:
        seen = self._newest
        if seen is None or self._process.poll() is not None:
            return None
        return Telemetry(t_ns, temperature_c=seen.temperature_c, power_w=seen.power_w, load_percent=seen.cpu_percent)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        if self._process.stdout:
            self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._newest = parse_tegrastats(line)

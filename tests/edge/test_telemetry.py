"""Telemetry from the kernel's files, from tegrastats and jtop, and from a recording."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from edge.config import TelemetryConfig
from edge.errors import SourceError
from edge.records import Telemetry
from edge.telemetry import (
    FileTelemetry,
    SystemTelemetry,
    TegrastatsProcess,
    jtop_telemetry,
    open_telemetry,
    parse_tegrastats,
    read_battery,
    read_temperature,
)

S = 1_000_000_000


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_no_battery_is_unknown_and_not_empty(tmp_path: Path) -> None:
    write(tmp_path / "AC", type="Mains", online=1)
    write(tmp_path / "mouse", type="Battery", scope="Device", capacity=5, status="Discharging")
    assert read_battery(tmp_path) == (None, None, None)
    assert read_battery(tmp_path / "nowhere") == (None, None, None)


def test_battery(tmp_path: Path) -> None:
    write(
        tmp_path / "BAT0",
        type="Battery",
        capacity=80,
        status="Discharging",
        energy_full=30_000_000,
        power_now=6_500_000,
    )
    assert read_battery(tmp_path) == (80.0, False, 6.5)
    # a second one, a third as large, draws 0.5 A at 12 V: (80 * 30 + 40 * 10) / 40 = 70 %
    write(tmp_path / "BAT1", type="Battery", capacity=40, status="Charging", energy_full=10_000_000)
    (tmp_path / "BAT1/current_now").write_text("-500000\n")
    (tmp_path / "BAT1/voltage_now").write_text("12000000\n")
    assert read_battery(tmp_path) == (70.0, True, 12.5)


@pytest.mark.parametrize("capacity", ["", "-1", "255", "full"], ids=repr)
def test_a_charge_that_cannot_be_is_unknown(tmp_path: Path, capacity: str) -> None:
    write(tmp_path / "BAT0", type="Battery", capacity=capacity, status="Unknown")
    assert read_battery(tmp_path) == (None, None, None)


def test_temperature_is_the_hottest_that_can_be(tmp_path: Path) -> None:
    zones = [("cpu-thermal", 51_250), ("gpu-thermal", 48_000), ("PMIC-Die", 100_000), ("off", -256_000), ("bad", "x")]
    for i, (kind, value) in enumerate(zones):
        write(tmp_path / f"thermal_zone{i}", type=kind, temp=value)
    assert read_temperature(tmp_path) == 51.25
    assert read_temperature(tmp_path / "nowhere") is None


def test_the_machine_is_read_again_after_the_period(tmp_path: Path) -> None:
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    write(sys / "class/power_supply/BAT0", type="Battery", capacity=50, status="Discharging")
    write(sys / "firmware/acpi", platform_profile="balanced")
    write(proc, stat="cpu  100 0 100 700 100 0 0 0 0 0")
    source = SystemTelemetry(period_ns=2 * S, sys=sys, proc=proc)
    first = source.at(10 * S)
    assert first == Telemetry(10 * S, 50.0, False, None, None, "balanced", None)
    (sys / "class/power_supply/BAT0/capacity").write_text("49")
    # 100 more, of which 20 idle and 10 waiting: 70 % used
    (proc / "stat").write_text("cpu  160 0 110 720 110 0 0 0 0 0")
    assert source.at(11 * S) is first
    later = source.at(12 * S)
    assert later is not None and (later.battery_percent, later.load_percent) == (49.0, pytest.approx(70.0))
    assert source.at(0) is not later, "a clock that went back reads again"


def test_this_machine_can_be_read() -> None:
    with SystemTelemetry(period_ns=S) as source:
        seen = source.at(0)
    assert seen is not None
    assert seen.battery_percent is None or 0 <= seen.battery_percent <= 100
    assert seen.temperature_c is None or -40 < seen.temperature_c < 150


def tegrastats_cases() -> list[dict]:
    folder = os.environ.get("EMOGAZE_DATA", "")
    file = Path(folder) / "reference" / "tegrastats_lines.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if folder and file.is_file() else []


@pytest.mark.parametrize("case", tegrastats_cases(), ids=lambda case: case["name"])
def test_tegrastats_lines(case: dict) -> None:
    seen, expected = parse_tegrastats(case["line"]), case["expected"]
    assert (seen.mem_used_mb, seen.mem_total_mb) == (expected["mem_used_mb"], expected["mem_total_mb"])
    assert (seen.gpu_percent, seen.temperature_c) == (expected["gpu_pct"], expected["temp_c"])
    assert seen.gpu_power_w == expected["gpu_power_w"]


ORIN = (
    "RAM 3452/7620MB (lfb 25x4MB) CPU [10%@1420,20%@1420,off,30%@729] GR3D_FREQ 7% cpu@50C tj@61.5C gpu@-256C "
    "VDD_IN 4824mW/4800mW VDD_CPU_GPU_CV 518mW/518mW"
)


def test_tegrastats_whole_board() -> None:
    seen = parse_tegrastats(ORIN)
    assert (seen.cpu_percent, seen.temperature_c, seen.power_w, seen.gpu_power_w) == (20.0, 61.5, 4.824, 0.518)
    nothing = parse_tegrastats("garbage RAM x/yMB")
    assert (nothing.mem_used_mb, nothing.cpu_percent, nothing.temperature_c, nothing.power_w) == (
        None,
        None,
        None,
        None,
    )


def test_tegrastats_as_a_process(tmp_path: Path) -> None:
    program = tmp_path / "tegrastats"
    program.write_text(f"#!/bin/sh\nwhile echo '{ORIN}'; do sleep 0.05; done\n")
    program.chmod(0o755)
    source = TegrastatsProcess([str(program)])
    deadline = time.monotonic() + 10
    while (seen := source.at(7)) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    source.close()
    assert seen == Telemetry(7, temperature_c=61.5, power_w=4.824, load_percent=20.0)
    assert source.at(8) is None, "a program that ended says nothing more"
    source.close()


def test_jtop() -> None:
    zones = {
        "CPU": {"temp": 50.0, "online": True},
        "GPU": {"temp": 52.0, "online": True},
        "cv0": {"temp": -256, "online": False},
    }
    power = {"rail": {}, "tot": {"power": 4824, "avg": 4800}}
    assert jtop_telemetry(3, zones, power, "15W") == Telemetry(3, temperature_c=52.0, power_w=4.824, power_mode="15W")
    assert jtop_telemetry(3, {}, {}, None) == Telemetry(3)


def test_a_recordings_telemetry(tmp_path: Path) -> None:
    file = tmp_path / "telemetry.ndjson"
    file.write_text('{"t_s": 1, "battery_percent": 50}\n{"t_s": 2.5, "battery_percent": 20, "power_mode": "10W"}\n')
    source = open_telemetry(TelemetryConfig(source=str(file)), live=False)
    assert source is not None
    assert source.at(S - 1) is None
    assert source.at(S) == source.at(2 * S) == Telemetry(S, battery_percent=50.0)
    assert source.at(99 * S) == Telemetry(2_500_000_000, battery_percent=20.0, power_mode="10W")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "can't be read", id="missing"),
        pytest.param('{"t_s": 1}\n{"t_s": 0}\n', "line 2", id="times-go-back"),
        pytest.param('{"t_s": 1, "baterry": 3}\n', "baterry", id="unknown-key"),
        pytest.param('{"t_s": 1, "battery_percent": "3"}\n', "line 1", id="text-for-a-number"),
    ],
)
def test_a_bad_telemetry_file_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "telemetry.ndjson"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SourceError, match=message):
        FileTelemetry(file)


def test_no_source_and_a_wrong_one() -> None:
    assert open_telemetry(TelemetryConfig(), live=False) is None
    with pytest.raises(SourceError, match="no telemetry of this machine"):
        open_telemetry(TelemetryConfig(source="system"), live=False)

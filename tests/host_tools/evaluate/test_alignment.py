from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from edge.errors import DataError
from edge.gaze.sources.xdf import XdfStream
from host_tools.__main__ import app
from host_tools.evaluate.alignment import StreamTiming, check, lag, timing


def stream(t_s: np.ndarray, values: np.ndarray | None = None) -> XdfStream:
    samples = np.zeros((len(t_s), 1)) if values is None else values[:, None]
    return XdfStream("s", "EEG", "s", 100.0, 1, np.round(t_s * 1e9).astype(np.int64), samples, None)


def test_an_even_stream_has_no_jitter() -> None:
    found = timing(stream(np.arange(500) / 100 + 7))
    assert found.hz_measured == pytest.approx(100)
    assert found.jitter_ms == pytest.approx(0, abs=1e-3)
    assert (found.n_breaks, found.n_backward, found.start_s) == (0, 0, 7)


def test_jitter_breaks_and_steps_back_are_measured() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(1000) / 100 + rng.uniform(-0.004, 0.004, 1000)
    t[500:] += 3
    t[800:] -= 0.05
    found = timing(stream(t))
    assert (found.n_breaks, found.n_backward) == (1, 1)
    assert found.longest_break_s == pytest.approx(3.01, abs=0.01)
    assert found.jitter_ms > 3


def blinks(t: np.ndarray, delay_s: float = 0.0) -> np.ndarray:
    times = np.array([1.3, 3.1, 4.4, 7.2, 8.0, 9.9, 12.3, 14.1, 17.7])
    return np.exp(-(((t[:, None] - times - delay_s) / 0.06) ** 2)).sum(axis=1)


@pytest.mark.parametrize("delay_ms", [-120.0, 0.0, 36.5], ids=["early", "none", "late"])
def test_lag_between_an_eye_and_eeg(delay_ms: float) -> None:
    rng = np.random.default_rng(1)
    t_eye, t_eeg = np.arange(0, 20, 1 / 120), np.arange(0, 20, 1 / 128)
    eye = 1 - blinks(t_eye)  # openness falls where the EEG rises
    eeg = 80 * blinks(t_eeg, delay_ms / 1000) + rng.normal(0, 5, len(t_eeg)) + 30 * np.sin(t_eeg / 6)
    found = lag(("eye", t_eye, eye), ("eeg", t_eeg, eeg))
    assert found.clear
    assert found.correlation < -0.8
    assert found.lag_ms == pytest.approx(-delay_ms, abs=3)


def test_noise_has_no_clear_lag() -> None:
    rng = np.random.default_rng(2)
    t = np.arange(0, 20, 0.01)
    found = lag(("a", t, rng.normal(size=2000)), ("b", t, rng.normal(size=2000)))
    assert not found.clear


def even(jitter_ms: float) -> StreamTiming:
    return StreamTiming("s", "Gaze", 10, 100, 100, 0, 1, jitter_ms, 0, 0, 0)


def test_the_bound_is_50_ms_and_stamps_alone_are_not_enough() -> None:
    t = np.arange(0, 20, 0.005)
    shifted = lag(("a", t, blinks(t)), ("b", t, blinks(t, 0.08)))
    assert check([even(1.0)], [shifted]).status == "fail"
    assert check([even(1.0)], [lag(("a", t, blinks(t)), ("b", t, blinks(t, 0.02)))]).status == "pass"
    assert check([even(1.0)], []).status == "unknown"
    assert "jitter by 60.0 ms" in check([even(60.0)], []).text


def test_command_on_a_real_recording(data: Path) -> None:
    pytest.importorskip("pyxdf")
    path = str(data / "xdf" / "minimal.xdf")
    text = CliRunner().invoke(app, ["alignment", path], catch_exceptions=False).output
    assert "SendDataC (EEG)" in text
    assert "10.00 Hz measured (10 declared)" in text
    with pytest.raises(DataError, match="has no channel '9'"):
        CliRunner().invoke(app, ["alignment", path, "--events", "SendDataC:9,SendDataC:0"], catch_exceptions=False)


def test_jitter_is_that_of_the_stamps_as_received(data: Path) -> None:
    pytest.importorskip("pyxdf")
    path = str(data / "xdf" / "clock_resets.xdf")
    document = json.loads(CliRunner().invoke(app, ["alignment", path, "--json"], catch_exceptions=False).stdout)
    eeg = next(s for s in document["streams"] if s["name"] == "BioSemi")
    assert eeg["jitter_ms"] > 0.1

"""Streams with known faults; the figures are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edge.live.monitor import StreamMonitor

MS, S = 1_000_000, 1_000_000_000


def run(stamps_ns, arrivals_ns=None, declared_hz=0.0):
    monitor = StreamMonitor("gaze", declared_hz, silent_ms=200)
    arrivals = stamps_ns if arrivals_ns is None else arrivals_ns
    verdicts = [monitor.add(int(t), int(a)) for t, a in zip(stamps_ns, arrivals, strict=True)]
    return monitor, verdicts


def regular(n, step_ns=5 * MS, start_ns=0):
    return start_ns + np.arange(n) * step_ns


def test_an_even_stream():
    stamps = regular(1000)
    monitor, verdicts = run(stamps, stamps + 3 * MS, declared_hz=200)
    stats = monitor.stats(int(stamps[-1]) + 10 * MS)
    assert set(verdicts) == {"ok"}
    assert stats.measured_hz == pytest.approx(200)
    assert stats.jitter_ms == pytest.approx(0, abs=1e-6)
    assert stats.offset_ms == pytest.approx(3)
    assert stats.age_ms == pytest.approx(7)
    assert not stats.silent


def test_a_declared_rate_that_is_not_kept_shows_beside_the_measured_one():
    monitor, _ = run(regular(500, 8 * MS), declared_hz=200)
    stats = monitor.stats(4 * S)
    assert (stats.declared_hz, stats.measured_hz) == (200, pytest.approx(125))


def test_jitter_is_the_spread_of_the_intervals():
    stamps = regular(1001, 10 * MS)
    stamps[1::2] += MS  # intervals of 11 and 9 ms by turns: 1 ms from their mean
    monitor, _ = run(stamps)
    assert monitor.stats(0).jitter_ms == pytest.approx(1)


def test_pictures_skipped_on_purpose_count_and_make_no_gap():
    """A camera of 30 Hz of which every third picture is taken."""
    monitor = StreamMonitor("scene", 30, 500)
    verdicts = {monitor.add(k * S // 30, k * S // 30, 3) for k in range(0, 600, 3)}
    stats = monitor.stats(20 * S)
    assert verdicts == {"ok"} and stats.samples == 600
    assert stats.measured_hz == pytest.approx(30)
    assert monitor.add(21 * S, 21 * S, 3) == "gap"


def test_the_rate_leaves_gaps_out():
    monitor, _ = run(np.concatenate([regular(200), regular(200, start_ns=60 * S)]))
    assert monitor.stats(0).measured_hz == pytest.approx(200)


@pytest.mark.parametrize("within_ns", [1000, 0], ids=["nearly equal stamps", "equal stamps"])
def test_bursts_of_twelve_have_the_right_rate_and_no_gaps(within_ns):
    stamps = np.repeat(np.arange(60) * 60 * MS, 12) + np.tile(np.arange(12) * within_ns, 60)
    monitor, verdicts = run(stamps)
    assert monitor.stats(0).measured_hz == pytest.approx(200, rel=0.03)
    assert set(verdicts) <= {"ok", "duplicate"}


def test_a_gap_is_counted_with_what_was_lost():
    stamps = np.concatenate([regular(200), regular(200, start_ns=200 * 5 * MS + 250 * MS)])
    monitor, verdicts = run(stamps)
    stats = monitor.stats(0)
    assert (verdicts.count("gap"), stats.gaps) == (1, 1)
    assert stats.lost_ms == pytest.approx(250)


def test_samples_out_of_order_are_no_jump():
    _, verdicts = run(np.array([1, 3, 2, 4, 4]) * 5 * MS)
    assert verdicts == ["ok", "ok", "reordered", "ok", "duplicate"]


@pytest.mark.parametrize("leap_ns", [15 * S, -15 * S], ids=["forward", "backward"])
def test_a_clock_step_of_15_s_is_one_jump(leap_ns):
    arrivals = regular(400, start_ns=100 * S)
    stamps = arrivals.copy()
    stamps[200:] += leap_ns
    monitor, verdicts = run(stamps, arrivals)
    assert verdicts[200] == "jump" and verdicts.count("jump") == 1
    assert set(verdicts[201:]) == {"ok"}
    assert monitor.stats(0).measured_hz == pytest.approx(200)  # of the new segment alone


def test_a_clock_reset_from_74701_s_to_34_s_is_one_jump():
    arrivals = regular(200, start_ns=75_000 * S)
    stamps = np.concatenate([regular(100, start_ns=74_701 * S), regular(100, start_ns=34 * S)])
    _, verdicts = run(stamps, arrivals)
    assert [k for k, v in enumerate(verdicts) if v == "jump"] == [100]


def test_a_stalled_link_that_delivers_late_is_no_jump():
    stamps = regular(400)
    arrivals = stamps + 2 * MS
    arrivals[200:300] = stamps[300] + 2 * MS
    _, verdicts = run(stamps, arrivals)
    assert set(verdicts) == {"ok"}


def test_drift_is_told_in_parts_per_million():
    seconds = np.arange(100)
    stamps = seconds * S
    monitor, _ = run(stamps, stamps + 5 * MS + seconds * 50_000)  # arrival runs away by 50 us a second
    assert monitor.stats(0).drift_ppm == pytest.approx(50, rel=0.01)


def test_silence_is_noticed_by_our_clock():
    monitor, _ = run([0, 5 * MS])
    assert not monitor.silent(205 * MS)
    assert monitor.silent(206 * MS)
    assert StreamMonitor("gaze", 0, 200).silent(0)


def test_too_little_gives_nan():
    stats = StreamMonitor("gaze", 200, 200).stats(0)
    assert all(
        math.isnan(v) for v in (stats.measured_hz, stats.jitter_ms, stats.offset_ms, stats.drift_ppm, stats.age_ms)
    )

"""What the soak benchmark makes of its samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.soak import Sample, judge

FIRST = Sample(
    t_s=0.0, state="ready", pictures=10, scores=5, camera_dropped=2, pictures_dropped=0, sinks_dropped=0,
    deadlines_missed=0, p50_ms=30.0, p99_ms=50.0, resident_mb=200.0, readers_mb=50.0, descriptors=40, threads=12,
)  # fmt: skip


def samples(growth_mb_per_min=0.0, warm_up_mb=20.0, **changed):
    """Fifteen minutes, a look a second: memory rises while warming up, then by `growth_mb_per_min`."""
    made = []
    for k in range(901):
        memory = 200 + warm_up_mb * min(1, k / 200) + growth_mb_per_min * k / 60
        made.append(replace(FIRST, t_s=float(k), pictures=10 + 30 * k, scores=5 + 20 * k, resident_mb=memory))
    made[-1] = replace(made[-1], **changed)
    return made


def test_a_quiet_run_passes_whatever_the_warm_up_took():
    verdict = judge(samples())
    assert verdict["passed"] and verdict["growth_mb_per_10_min"] == pytest.approx(0, abs=1e-6)
    assert (verdict["pictures"], verdict["scores"]) == (27_000, 18_000)


def test_the_thread_that_answers_for_the_status_is_no_leak():
    made = [replace(s, threads=12 + k % 2, descriptors=40 + k % 2) for k, s in enumerate(samples())]
    assert judge(made)["passed"]


def test_growth_is_not_told_from_a_short_run():
    verdict = judge(samples(5.0)[:200])  # 100 s are left after the warm-up
    assert verdict["growth_mb_per_10_min"] is None and verdict["passed"]
    assert judge(samples(5.0)[:300])["failed"] == ["memory"]


def test_pictures_in_flight_are_no_growth():
    made = [replace(s, resident_mb=s.resident_mb + 2.8 * (k > 700 and k % 3 == 0)) for k, s in enumerate(samples())]
    assert judge(made)["passed"]


@pytest.mark.parametrize(("mb_per_min", "passed"), [(0.05, True), (0.2, False)], ids=["0.5 MB", "2 MB"])
def test_growth_is_a_slope_per_ten_minutes(mb_per_min, passed):
    verdict = judge(samples(mb_per_min))
    assert verdict["growth_mb_per_10_min"] == pytest.approx(10 * mb_per_min)
    assert verdict["passed"] is passed


@pytest.mark.parametrize(
    "changed",
    [{"camera_dropped": 3}, {"sinks_dropped": 1}, {"deadlines_missed": 1}, {"descriptors": 41}, {"threads": 13}],
    ids=lambda changed: next(iter(changed)),
)
def test_one_drop_or_leak_fails(changed):
    assert judge(samples(**changed))["failed"] == list(changed)

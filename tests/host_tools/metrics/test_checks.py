from __future__ import annotations

import math

import pytest

from host_tools.metrics import checks as ck


@pytest.mark.parametrize(
    ("check", "status"),
    [
        (ck.kappa(0.75, "cohen"), "pass"),
        (ck.kappa(0.749, "cohen"), "fail"),
        (ck.kappa(None, ""), "unknown"),
        (ck.synchronisation(49.9), "pass"),
        (ck.synchronisation(-50.0), "fail"),
        (ck.synchronisation(None), "unknown"),
        (ck.samples_per_emotion({"happy": 50, "sad": 50}), "pass"),
        (ck.samples_per_emotion({"happy": 50, "sad": 49}), "warn"),
        (ck.interval_width((0.70, 0.79)), "pass"),
        (ck.interval_width((0.70, 0.81)), "warn"),
        (ck.interval_width((math.nan, math.nan)), "unknown"),
        (ck.shift_from_base(0.80, 0.798), "warn"),
        (ck.shift_from_base(0.80, 0.75), "pass"),
        (ck.fcc_defined(10, 10, 0.0), "fail"),
        (ck.fcc_defined(10, 0, 0.0), "fail"),
        (ck.fcc_defined(10, 1, 4.0), "warn"),
        (ck.participants(["a", "a"]), "warn"),
        (ck.participants(["a", "b", "b"]), "pass"),
        (ck.participants(None), "warn"),
        (ck.classes({"happy": 3, "sad": 0}, []), "warn"),
        (ck.classes({"happy": 3, "sad": 1}, []), "pass"),
    ],
    ids=lambda v: f"{v.name}-{v.value}" if isinstance(v, ck.Check) else v,
)
def test_status(check: ck.Check, status: str) -> None:
    assert check.status == status


def test_participant_with_one_sample_is_counted() -> None:
    assert "2 of them; 1 with one sample" in ck.participants(["a", "b", "b"]).text


@pytest.mark.parametrize(
    ("n_labels", "n_with_fcc", "scenes", "applies"),
    [
        (6, 10, None, "yes"),
        (6, 0, None, "impossible"),
        (2, 10, None, "not needed"),
        (6, 10, ["face", "Portrait"], "not needed"),
        (6, 10, ["face", "street"], "yes"),
    ],
    ids=["scenes", "no-gaze", "two-classes", "faces", "some-faces"],
)
def test_applicability(n_labels: int, n_with_fcc: int, scenes: list[str] | None, applies: str) -> None:
    assert ck.applicability(n_labels, n_with_fcc, scenes)[0] == applies

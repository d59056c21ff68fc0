"""The drift report and its gate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from calibration import drift
from calibration.answers import Answers, read_answers
from calibration.drift import Judge, passes
from calibration.pictures import load
from edge.backends.base import Model
from edge.errors import DataError

GOOD = {"n_fixations": 200, "dfcc_median": 0.01, "dfcc_p95": 0.03, "spearman": 0.98}


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        pytest.param({}, True, id="at every bound"),
        pytest.param({"n_fixations": 199}, False, id="too few fixations"),
        pytest.param({"dfcc_median": 0.0101}, False, id="median"),
        pytest.param({"dfcc_p95": 0.0301}, False, id="p95"),
        pytest.param({"spearman": 0.9799}, False, id="rank"),
        pytest.param({"spearman": float("nan")}, False, id="no rank"),
        pytest.param({"cawf1_change": -0.012}, True, id="cawF1 at its bound"),
        pytest.param({"cawf1_change": -0.0121}, False, id="cawF1 falls"),
        pytest.param({"cawf1_change": float("nan")}, False, id="no cawF1"),
    ],
)
def test_the_gate(change: dict[str, float], passed: bool) -> None:
    assert passes({**GOOD, **change}) is passed


def test_a_model_has_not_drifted_from_itself(tiny: Model, pictures) -> None:
    report = Judge(tiny, load(pictures).held).measure(tiny)
    assert report["n_fixations"] == drift.N_FIXATIONS and report["pictures"] == 2
    assert report["dfcc_median"] == report["dfcc_p95"] == report["dfcc_mean"] == 0
    assert report["spearman"] == pytest.approx(1) and report["cosine_centred_p05"] == pytest.approx(1, abs=1e-4)
    assert "top1_agreement" not in report, "it has no classes"
    assert passes(report)


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    rows = ["0.png,happy,happy", "2.png,happy,happy", "5.png,sad,happy", "1.png,angry,sad"]
    (tmp_path / "answers.csv").write_text("\n".join(["picture,true,pred", *rows]))
    return read_answers(tmp_path / "answers.csv", "ekman6")


def test_cawf1_by_hand(answers: Answers) -> None:
    """FCC .6 and .3, one of two right: F1 of happy 2 * .6 / (2 * .6 + .3) = .8, of sad 0; their mean is .4."""
    assert answers.cawf1(["2.png", "5.png"], np.array([0.6, 0.3])) == pytest.approx(0.4)


def test_cawf1_stands_in_the_report_where_labels_are_given(tiny: Model, pictures, answers: Answers) -> None:
    held = load(pictures).held
    same = Judge(tiny, held, answers=answers).measure(tiny)
    assert same["cawf1_samples"] == 2, "of four labelled pictures two are held out"
    assert same["cawf1"] == same["cawf1_reference"] > 0 and same["cawf1_change"] == 0
    other = Judge(tiny, held, answers=answers).measure(_Shuffled(tiny))
    assert other["cawf1_reference"] == same["cawf1_reference"] and other["cawf1_change"] != 0
    with pytest.raises(DataError, match=r"none is of a held-out picture; expected some of 0\.png"):
        Judge(tiny, {"0.png": held["2.png"]}, answers=Answers(answers.labels, {"9.png": "sad"}, {"9.png": "sad"}))


class _Shuffled(Model):
    """A model whose features are another's, in another order for every picture: no embedding any more."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner.manifest, backend="test", active="cpu")
        self._inner, self._rng = inner, np.random.default_rng(0)

    def _run(self, feeds, outputs):
        results = self._inner.infer(feeds, outputs)
        return {name: self._rng.permuted(array, axis=1) for name, array in results.items()}


def test_noise_fails(tiny: Model, pictures) -> None:
    report = Judge(tiny, load(pictures).held).measure(_Shuffled(tiny))
    assert report["cosine_centred_median"] < 0.5 and abs(report["spearman"]) < 0.5
    assert not passes(report)


def test_means_belong_to_the_artefact(tiny: Model, pictures) -> None:
    """The same features with another model mean score differently: why quantised artefacts get their own."""
    mean = np.full(16, 0.5, dtype=np.float32)
    moved = msgspec.structs.replace(tiny.manifest, mean_local=mean, mean_global=mean)
    judge = Judge(tiny, load(pictures).held)
    tiny.manifest = moved
    assert judge.measure(tiny)["dfcc_median"] > 0

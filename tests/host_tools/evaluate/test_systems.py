from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge.errors import ConfigError, DataError
from host_tools.datasets import layout
from host_tools.evaluate.config import SystemConfig, load
from host_tools.evaluate.systems import fit_softmax, predicted_points, read_answers


@pytest.fixture
def dataset(tmp_path: Path) -> layout.Dataset:
    samples = [layout.Sample("a", "P1", "happy"), layout.Sample("b", "P2", "sad"), layout.Sample("c", "P2", "sad")]
    layout.write(tmp_path, layout.DatasetInfo(name="x", labels="happy,sad"), samples)
    return layout.load(tmp_path)


def test_answers_are_aligned_and_what_lacks_is_counted(dataset: layout.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("sample_id,pred,p_joy,p_sad,att_voice\nc,Sadness,0.1,0.9,0.4\na,joy,0.8,0.2,\nz,sad,0,1,1\n")
    answers = read_answers(path, dataset)
    assert answers.pred == ["happy", "", "sad"]
    np.testing.assert_equal(answers.p, [[0.8, 0.2], [np.nan, np.nan], [0.1, 0.9]])
    np.testing.assert_equal(answers.extra["att_voice"], [np.nan, np.nan, 0.4])
    assert answers.notes[0] == "1 samples without a prediction, counted as wrong: b"
    assert answers.notes[1].startswith("1 predictions are of no sample")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sample_id,pred\nz,sad\n", "predicts none of the samples; expected a, b, c"),
        ("sample_id,pred,p_sad\na,sad,1\n", "probabilities of some labels only; expected also happy"),
        ("sample_id,pred\na,sad\na,sad\n", "stand more than once"),
    ],
    ids=["strangers", "some-labels", "double"],
)
def test_bad_answers(dataset: layout.Dataset, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_answers(tmp_path / "p.csv", dataset)


def test_places_come_from_maps_as_many_as_were_recorded(dataset: layout.Dataset, tmp_path: Path) -> None:
    values = np.zeros((40, 60))
    values[10, 20], values[30, 50] = 2, 1
    (tmp_path / "maps").mkdir()
    np.save(tmp_path / "maps" / "a.npy", values)
    system = SystemConfig(name="s", predictions="p.csv", maps="maps")
    one, two, three = predicted_points(system, tmp_path, dataset, [2, 1, 1])
    assert one.tolist() == [[20.5, 10.5], [50.5, 30.5]]
    assert two.shape == three.shape == (0, 2)


def test_softmax_separates_what_can_be_separated() -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 20)
    features = rng.normal(0, 0.3, (60, 5)) + 3 * np.eye(5)[codes] + 7
    weights, intercepts = fit_softmax(features, codes, 3, l2=1e-3)
    assert ((features @ weights.T + intercepts).argmax(axis=1) == codes).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('dataset = "."\nsystems = []\n', "at least one"),
        ('dataset = "."\n[[systems]]\nname = "a"\n', "has no predictions"),
        ('dataset = "."\nbaseline = "b"\n[[systems]]\nname = "a"\nkind = "probe"\n', "there is no system 'b'"),
        ('dataset = "."\nresample = 5\n[[systems]]\nname = "a"\nkind = "probe"\n', "unknown field `resample`"),
        (
            'dataset = "."\n[[systems]]\nname = "a"\npredictions = "p"\nmaps = "m"\nfixations = "f"\n',
            "one of them",
        ),
    ],
    ids=["none", "no-predictions", "baseline", "unknown-key", "maps-and-fixations"],
)
def test_bad_settings(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "e.toml")

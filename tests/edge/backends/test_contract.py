"""One contract for every inference runtime: each plug-in of the folder runs the artefacts whose files it takes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edge import plugins
from edge.backends.base import PACKAGE, Model, new_batch, open_model
from edge.config import ModelsConfig
from edge.manifest import list_artefacts
from tests.conftest import missing

#: For each kind of weights file, the smallest artefact of the default set.
ARTEFACTS = {".onnx": "mini_xception-fp32", ".tflite": "blazeface_full_sparse-fp32"}


@pytest.fixture(params=plugins.names(PACKAGE))
def backend(request: pytest.FixtureRequest) -> tuple[str, ModuleType]:
    plugin = plugins.load(PACKAGE, request.param, setting="test")
    reason = plugin.missing()
    if reason:
        missing(request.param, reason)
    return request.param, plugin


@pytest.fixture
def model(backend: tuple[str, ModuleType], artefacts: Path) -> Model:
    name, plugin = backend
    opened = open_model(ARTEFACTS[plugin.SUFFIXES[0]], ModelsConfig(dir=str(artefacts), backend=name))
    yield opened
    opened.close()


def feeds(model: Model, n: int = 1, seed: int = 0) -> dict[str, np.ndarray]:
    spec = model.manifest.input()
    batch = new_batch(spec, n)
    batch[:] = np.random.default_rng(seed).uniform(-1, 1, batch.shape)
    return {spec.name: batch}


def test_says_what_it_is(model: Model, backend: tuple[str, ModuleType]) -> None:
    assert model.backend == backend[0]
    assert model.active and model.degraded == ""


def test_gives_what_the_manifest_promises(model: Model) -> None:
    results = model.infer(feeds(model))
    for spec in model.manifest.outputs:
        assert results[spec.name].shape == tuple(max(side, 1) for side in spec.shape)
        assert results[spec.name].dtype == spec.dtype
    assert list(results) == [spec.name for spec in model.manifest.outputs]


def test_only_the_outputs_asked_for(model: Model) -> None:
    last = model.manifest.outputs[-1].name
    assert list(model.infer(feeds(model), (last,))) == [last]


def test_the_same_input_gives_the_same_bits(model: Model) -> None:
    one, other, again = (model.infer(feeds(model, seed=s)) for s in (0, 1, 0))
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])
        assert not np.array_equal(one[name], other[name])


def test_results_are_not_overwritten_by_the_next_call(model: Model) -> None:
    first = model.infer(feeds(model))
    kept = {name: array.copy() for name, array in first.items()}
    model.infer(feeds(model, seed=1))
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])


def test_a_batch_equals_its_items(model: Model) -> None:
    if model.manifest.input().shape[0] != -1:
        pytest.skip("the artefact has a fixed batch")
    both = feeds(model, 2)
    together = model.infer(both)
    for i in range(2):
        alone = model.infer({name: array[i : i + 1] for name, array in both.items()})
        for name in alone:
            np.testing.assert_allclose(together[name][i], alone[name][0], atol=1e-5)


def test_an_empty_batch_does_not_reach_the_engine(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object) -> None:
        raise AssertionError("the engine was called")

    monkeypatch.setattr(type(model), "_run", reached)
    empty = {name: array[:0] for name, array in feeds(model).items()}
    results = model.infer(empty)
    assert all(len(array) == 0 for array in results.values())
    assert [array.shape[1:] for array in results.values()] == [spec.shape[1:] for spec in model.manifest.outputs]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(lambda x: x.astype(np.float64), "expected float32", id="dtype"),
        pytest.param(lambda x: x[..., 1:], "expected float32", id="shape"),
        pytest.param(lambda x: x[0], "expected float32", id="no batch"),
        pytest.param(lambda x: np.where(x == x.max(), np.float32("nan"), x), "holds NaN", id="nan"),
        pytest.param(lambda x: np.where(x == x.max(), np.float32("inf"), x), "holds NaN or infinity", id="infinity"),
    ],
)
def test_bad_inputs_are_refused_by_name(model: Model, spoil: object, says: str) -> None:
    (name, array), *_ = feeds(model).items()
    with pytest.raises(ValueError, match=f"input {name}: {says}"):
        model.infer({name: spoil(array)})


@pytest.mark.parametrize("case", ["unknown input", "no input", "unknown output"])
def test_unknown_names_are_refused(model: Model, case: str) -> None:
    good = feeds(model)
    given = {"unknown input": {**good, "y": next(iter(good.values()))}, "no input": {}}.get(case, good)
    outputs = ("nothing",) if case == "unknown output" else None
    with pytest.raises(ValueError, match=f"model {model.manifest.name}: inputs .* and outputs .*; got"):
        model.infer(given, outputs)


def test_close_twice(model: Model) -> None:
    model.close()
    model.close()


def test_every_artefact_here_has_a_backend(artefacts: Path) -> None:
    suffixes = {s for name in plugins.names(PACKAGE) for s in plugins.load(PACKAGE, name, setting="test").SUFFIXES}
    assert {m.path.suffix for m in list_artefacts(artefacts)} <= suffixes

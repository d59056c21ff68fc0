"""From pictures to artefacts with a verdict, as the command does it."""

from __future__ import annotations

import cv2
import msgspec
import pytest

from calibration import artefacts
from calibration.pictures import load
from edge.backends.base import Model, open_model
from edge.config import ModelsConfig
from edge.errors import ModelError
from edge.manifest import load_manifest
from models.embedders import means


def test_both_schemes_are_written_with_their_drift(tiny: Model, pictures, capsys) -> None:
    images = [cv2.imread(str(file)) for file in sorted(pictures.iterdir())]
    made = list(artefacts.int8(tiny, load(pictures), images))
    assert [m.name for m in made] == ["tiny-int8-u8s8", "tiny-int8-s8s8"]
    for manifest in made:
        read = load_manifest(manifest.folder)
        assert read.reference == "tiny-fp32" and read.weights == "seeded" and read.precision in read.name
        assert read.mean_local is not None and read.mean_global is not None
        assert read.drift["n_fixations"] >= 200 and "layers_in_float" in read.drift
        assert read.gate == ("passed" if artefacts.passes(read.drift) else "failed")
    assert "median |dFCC|" in capsys.readouterr().out


def test_what_fails_is_refused_by_the_runtime(tiny: Model, pictures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "passes", lambda report: False)
    images = [cv2.imread(str(file)) for file in sorted(pictures.iterdir())]
    made = next(iter(artefacts.int8(tiny, load(pictures), images, say=lambda line: None)))
    folder = str(made.folder.parent)
    with pytest.raises(ModelError, match="failed its accuracy gate"):
        open_model(made.name, ModelsConfig(dir=folder))
    assert open_model(made.name, ModelsConfig(dir=folder, force=(made.name,))).manifest.gate == "failed"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_reduced_precision_is_measured_too(tiny: Model, pictures, precision: str) -> None:
    if precision == "bf16":
        openvino = pytest.importorskip("openvino")
        if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            pytest.skip("this processor computes no BF16")
    images = [cv2.imread(str(file)) for file in sorted(pictures.iterdir())]
    tiny.manifest = msgspec.structs.replace(tiny.manifest, **means(tiny, images))
    made = artefacts.reduced(tiny, precision, load(pictures), images, say=lambda line: None)
    assert made.name == f"tiny-{precision}" and made.gate == "passed"
    assert 0 < made.drift["dfcc_median"] < 0.01

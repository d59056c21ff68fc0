from __future__ import annotations

import numpy as np
import pytest

from host_tools.evaluate.cases import influence
from host_tools.labels import LabelSet
from host_tools.metrics import classification as cl


def test_influence_is_that_of_leaving_the_sample_out() -> None:
    rng = np.random.default_rng(1)
    labels = LabelSet("custom", ("happy", "sad", "fear"))
    samples = cl.Samples(labels, rng.integers(3, size=30), rng.integers(3, size=30), rng.random(30))

    def gap(chosen: cl.Samples) -> float:
        scores = cl.score(chosen)
        return scores["cawf1_macro"] - scores["cawf1_macro_base"]

    found = influence(samples)
    for i in (0, 7, 29):
        assert found[i] == pytest.approx(gap(samples) - gap(samples.take(np.arange(30) != i)))

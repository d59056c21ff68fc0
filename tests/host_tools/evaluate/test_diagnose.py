from __future__ import annotations

import numpy as np
import pytest

from host_tools.evaluate.attention import Pairs
from host_tools.evaluate.diagnose import by_share, decompose
from host_tools.evaluate.run import Scored
from host_tools.labels import LabelSet
from host_tools.metrics import classification as cl
from host_tools.samples import SampleTable


def scored(n: int = 300) -> Scored:
    rng = np.random.default_rng(3)
    labels = LabelSet("custom", ("happy", "sad", "fear"))
    true, pred = rng.integers(3, size=n), rng.integers(3, size=n)
    samples = cl.Samples(labels, true, pred, rng.uniform(0.3, 0.9, n), [f"P{i % 20}" for i in range(n)])
    return Scored("net", "observed", SampleTable("", [str(i) for i in range(n)], samples, {}), Pairs())


def test_shift_is_exactly_the_product_of_its_factors() -> None:
    one = scored()
    fcc = one.table.samples.fcc + 0.1 * (one.table.samples.true == one.table.samples.pred)
    found = decompose(one, fcc)
    assert found["product"] == pytest.approx(found["hard_minus_accuracy"], abs=1e-12)
    assert found["correlation_with_right"] > 0.1
    assert found["auc_right_against_wrong"] > 0.5


def test_equal_fcc_has_no_correlation_and_no_shift() -> None:
    one = scored()
    found = decompose(one, np.full(300, 0.5))
    assert np.isnan(found["correlation_with_right"])
    assert found["hard_minus_accuracy"] == pytest.approx(0)


def test_more_participants_narrow_the_interval() -> None:
    rows = by_share(scored(600).table.samples, 200, 0)
    assert [row["participants"] for row in rows] == [5, 10, 20]
    assert rows[0]["width"] > rows[1]["width"] > rows[2]["width"]

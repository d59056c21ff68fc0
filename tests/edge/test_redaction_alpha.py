"""Transparency can hold a face as well as colour can: where a picture is covered, it is opaque."""

from __future__ import annotations

import numpy as np

from edge.redaction import opaque_where_covered


def test_alpha_holds_nothing_under_a_cover() -> None:
    before = np.full((60, 80, 3), 90, np.uint8)
    after = before.copy()
    after[20:40, 30:50] = 0
    before[25:27, 35:37] = 0  # two pixels that had the cover's colour already
    alpha = np.arange(60 * 80, dtype=np.uint64).reshape(60, 80).astype(np.uint8)
    opaque = opaque_where_covered(alpha, before, after)
    assert (opaque[20:40, 30:50] == 255).all()
    far = np.ones((60, 80), bool)
    far[10:50, 20:60] = False
    assert (opaque[far] == alpha[far]).all()

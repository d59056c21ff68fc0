"""Emotions of labelled pictures, true and predicted: what the drift report needs to weigh F1 by FCC."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge.errors import DataError
from host_tools.labels import LabelSet, canonical, choose, encode_predicted, encode_true
from host_tools.metrics.classification import HEADLINE, Samples, score
from host_tools.tables import read_table


@dataclass(frozen=True)
class Answers:
    """True and predicted label by the picture's name."""

    labels: LabelSet
    true: dict[str, str]
    pred: dict[str, str]

    def cawf1(self, pictures: list[str], fcc: npt.NDArray[np.float64]) -> float:
        """Return cawF1 (macro-F1 in which sample i weighs FCC_i) of labelled `pictures`, each one sample."""
        true = encode_true([self.true[name] for name in pictures], self.labels)
        pred, _ = encode_predicted([self.pred[name] for name in pictures], self.labels)
        return score(Samples(self.labels, true, pred, fcc))[HEADLINE]


def read_answers(path: Path, labels: str = "") -> Answers:
    """Read a table with the columns `picture`, `true` and `pred`.

    Parameters
    ----------
    path : Path
        CSV or Parquet.
    labels : str
        Label set (see `host_tools.labels.choose`).

    Raises
    ------
    DataError
        A column is missing, a picture stands twice, or a true label is outside the set.
    """
    table = read_table(path)
    names = table.text("picture")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(table.path, "a picture stands twice", got=twice)
    true, pred = ([canonical(text) for text in table.text(column)] for column in ("true", "pred"))
    chosen = choose(labels, true)
    encode_true(true, chosen)
    return Answers(chosen, dict(zip(names, true, strict=True)), dict(zip(names, pred, strict=True)))

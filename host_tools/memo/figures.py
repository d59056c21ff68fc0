"""The figures of a run, as matplotlib figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from host_tools.memo.classes import CLASSES
from host_tools.memo.generation import Generation
from host_tools.memo.shares import Shares
from host_tools.memo.truth import Truth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]


def histograms(truth: Truth) -> Figure:
    """Figure 4: how the mean opinion scores are distributed."""
    figure, axes = _canvas(1, 2, (9, 3))
    for axis, (name, values) in zip(axes.flat, (("degree", truth.degree), ("quality", truth.quality)), strict=True):
        axis.hist(values[np.isfinite(values)], bins=np.linspace(0, 5, 26), color="#2458c5")
        axis.set(xlabel=f"MOS of {name}", ylabel="pictures", xlim=(0, 5))
    return figure


def mos_bars(generation: Generation) -> Figure:
    """Figure 5: mean quality and degree per model, and per prompt emotion."""
    figure, axes = _canvas(2, 2, (10, 6))
    for row, (name, values) in enumerate((("quality", generation.quality), ("degree", generation.degree))):
        for axis, labels, means in (
            (axes[row, 0], generation.models, _means(values, 1)),
            (axes[row, 1], list(CLASSES), _means(values, 0)),
        ):
            axis.bar(labels, means, color="#2458c5")
            axis.set(ylabel=f"mean {name}", ylim=(0, 5))
            axis.tick_params(axis="x", rotation=45)
    return figure


def quality_accuracy(generation: Generation) -> Figure:
    """Quality against accuracy, a point per generator."""
    figure, axes = _canvas(1, 1, (5, 4))
    axis = axes.flat[0]
    for i, model in enumerate(generation.models):
        x, y = generation.mean_quality[i], generation.by_model.micro(i).value
        axis.plot(x, y, "o", color="#2458c5")
        axis.annotate(model, (x, y), textcoords="offset points", xytext=(5, 3), fontsize=8)
    axis.set(xlabel="mean quality MOS", ylabel="G_acc", ylim=(0, 1.02))
    return figure


def confusions(shares: Shares) -> Figure:
    """Figures 6 and 7: a matrix of shares per group and, first, the one over all groups."""
    matrices = [("all", _overall(shares)), *((g, shares.matrix(i)) for i, g in enumerate(shares.groups))]
    if len(shares.groups) == 1:
        matrices = matrices[1:]
    width = min(4, len(matrices))
    height = -(-len(matrices) // width)
    figure, axes = _canvas(height, width, (3.4 * width, 3.0 * height))
    for axis in axes.flat[len(matrices) :]:
        axis.axis("off")
    for axis, (title, matrix) in zip(axes.flat, matrices, strict=False):
        axis.imshow(matrix, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        axis.set_xticks(range(len(shares.outcomes)), shares.outcomes, rotation=60, fontsize=7)
        axis.set_yticks(range(len(CLASSES)), CLASSES, fontsize=7)
        axis.set_title(title, fontsize=9)
        for (k, o), share in np.ndenumerate(matrix):
            if share >= 0.005:
                ink = "white" if share > 0.5 else "black"
                axis.text(o, k, f"{share:.2f}", ha="center", va="center", fontsize=6, color=ink)
    return figure


def _overall(shares: Shares) -> Floats:
    total = shares.counts.sum(axis=0)
    rows = total.sum(axis=1, keepdims=True)
    return np.divide(total, rows, out=np.full_like(total, np.nan), where=rows > 0)


def _means(values: Floats, axis: int) -> Floats:
    given = np.isfinite(values)
    n = given.sum(axis=axis)
    return np.divide(np.where(given, values, 0).sum(axis=axis), n, out=np.zeros(len(n)), where=n > 0)


def _canvas(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)

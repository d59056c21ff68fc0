"""The figures of an evaluation, drawn from its plain results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from host_tools.metrics import classification as cl

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = dict[str, Any]
_RIGHT, _WRONG, _LINE = "#2458c5", "#d2622a", "#5b6577"


def scores(results: Results) -> Figure:
    """The headline of each system and source with its interval, beside its base."""
    rows = [
        (f"{name} ({source})", body["scores"][cl.HEADLINE])
        for name, system in results["systems"].items()
        for source, body in system["sources"].items()
        if body["scores"][cl.HEADLINE]["value"] is not None
    ]
    figure, axis = _canvas((8, 0.6 + 0.42 * max(1, len(rows))))
    for y, (_, score) in enumerate(reversed(rows)):
        low, high = (v if v is not None else score["value"] for v in score["ci95"])
        axis.plot([low, high], [y, y], color=_RIGHT, lw=2)
        axis.plot(score["value"], y, "o", color=_RIGHT, label="cawF1 (macro)" if y == 0 else None)
        axis.plot(score["base"], y, "|", color=_WRONG, ms=14, mew=2, label="its base (macro-F1)" if y == 0 else None)
    axis.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
    axis.set(xlim=(0, 1), xlabel="score, 95 % interval by participant")
    if rows:
        axis.legend(loc="lower left", fontsize=8)
    return figure


def confusions(results: Results) -> Figure:
    """The confusion of each system: rows are true labels, shares of the row."""
    systems = {name: next(iter(system["sources"].values())) for name, system in results["systems"].items()}
    figure, axes = _canvases(len(systems), (3.6, 3.4))
    for axis, (name, body) in zip(axes, systems.items(), strict=False):
        counts = np.array(body["confusion"]["counts"], dtype=float)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axis.imshow(shares, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        for (i, j), count in np.ndenumerate(counts):
            if count:
                colour = "white" if shares[i, j] > 0.5 else "black"
                axis.text(j, i, f"{count:.0f}", ha="center", va="center", fontsize=7, color=colour)
        columns, rows = body["confusion"]["columns"], body["confusion"]["labels"]
        axis.set_xticks(range(len(columns)), columns, rotation=60, fontsize=7)
        axis.set_yticks(range(len(rows)), rows, fontsize=7)
        axis.set_title(name, fontsize=9)
    return figure


def fcc_histograms(results: Results) -> Figure:
    """How FCC is distributed over right and wrong samples."""
    rows = [r for r in results["fcc_histograms"] if sum(r["right"]) + sum(r["wrong"])]
    figure, axes = _canvases(len(rows), (3.6, 2.4))
    for axis, row in zip(axes, rows, strict=False):
        edges = np.array(row["edges"])
        axis.stairs(row["right"], edges, fill=True, color=_RIGHT, alpha=0.6, label="right")
        axis.stairs(row["wrong"], edges, fill=True, color=_WRONG, alpha=0.6, label="wrong")
        axis.set_title(f"{row['system']} ({row['source']})", fontsize=8)
        axis.set(xlim=(0, 1), xlabel="FCC")
        axis.legend(fontsize=7)
    return figure


def sweep(results: Results, setting: str) -> Figure | None:
    """The headline over the values of one setting, a line per system and source; None without two values."""
    rows = [r for r in results["sweeps"] if r["setting"] == setting and not r["reason"]]
    values = list(dict.fromkeys(r["value"] for r in rows))
    if len(values) < 2:
        return None
    figure, axis = _canvas((8, 3))
    for name in dict.fromkeys((r["system"], r["source"]) for r in rows):
        own = {r["value"]: r[cl.HEADLINE] for r in rows if (r["system"], r["source"]) == name}
        axis.plot(range(len(values)), [own.get(v, np.nan) for v in values], "o-", label=f"{name[0]} ({name[1]})")
    axis.set_xticks(range(len(values)), values)
    axis.set(xlabel=setting, ylabel="cawF1 (macro)")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def over_time(results: Results) -> Figure:
    """The headline in sliding windows."""
    figure, axis = _canvas((8, 3))
    for name in dict.fromkeys((r["system"], r["source"]) for r in results["over_time"]):
        own = [r for r in results["over_time"] if (r["system"], r["source"]) == name]
        x = [r["start_s"] + r["window_s"] / 2 for r in own]
        y = [np.nan if r[cl.HEADLINE]["value"] is None else r[cl.HEADLINE]["value"] for r in own]
        axis.plot(x, y, "o-", label=f"{name[0]} ({name[1]})")
    axis.set(xlabel="middle of the window, s", ylabel="cawF1 (macro)", ylim=(0, 1))
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _canvas(size: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=size)
    return figure, axis


def _canvases(n: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    from matplotlib import pyplot as plt

    columns = min(3, max(1, n))
    lines = -(-max(1, n) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(size[0] * columns, size[1] * lines), squeeze=False, layout="constrained"
    )
    flat = list(axes.flat)
    for axis in flat[n:]:
        axis.set_axis_off()
    return figure, flat

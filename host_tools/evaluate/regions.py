"""Where people look: clusters of fixations on each picture, what annotators call them, and scores by region and time.

Fixations of all who saw a picture are clustered together (DBSCAN; on a panorama by great-circle distance): a region
belongs to the picture. A cluster's label is what most annotators call the place nearest to its centre.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from edge.attention import stickiness, transition_entropy_bits
from edge.errors import DataError
from host_tools.datasets import panorama
from host_tools.datasets.layout import Dataset, table_path
from host_tools.evaluate import cawf1 as ev
from host_tools.evaluate.attention import distances
from host_tools.evaluate.embed import Points
from host_tools.evaluate.run import Evaluation, Scored
from host_tools.metrics import checks as ck
from host_tools.metrics import classification as cl
from host_tools.metrics.agreement import cohen_kappa, fleiss_kappa
from host_tools.metrics.clusters import cluster_directions, cluster_pixels
from host_tools.metrics.statistics import mean_of_defined
from host_tools.samples import named
from host_tools.tables import read_table

NOWHERE = ""  #: of a fixation in no cluster
ALL_REGIONS = "all, weighted"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A region of a picture: its centre, how many fixations it holds, and each annotator's label of it."""

    media: str
    number: int
    x_px: float
    y_px: float
    n_fixations: int
    labels: Mapping[str, str]

    @property
    def label(self) -> str:
        """What most annotators call it (ties: the first in the alphabet), else its number."""
        counts = Counter(sorted(self.labels.values()))
        return counts.most_common(1)[0][0] if counts else f"region {self.number}"


@dataclass(frozen=True)
class Regions:
    """The clusters of a data set, and the region's label of each fixation of each sample (`NOWHERE`: in none)."""

    clusters: list[Cluster]
    of_fixations: list[list[str]]
    annotators: tuple[str, ...]

    @property
    def kappa(self) -> tuple[float, str] | None:
        """Agreement of the annotators on the clusters that all of them labelled, and which kappa it is."""
        shared = [c.labels for c in self.clusters if len(c.labels) == len(self.annotators)]
        if len(self.annotators) < 2 or not shared:
            return None
        if len(self.annotators) == 2:
            one, other = ([labels[a] for labels in shared] for a in self.annotators)
            return cohen_kappa(one, other), "Cohen's"
        names = sorted({label for labels in shared for label in labels.values()})
        counts = [[list(labels.values()).count(name) for name in names] for labels in shared]
        return fleiss_kappa(counts), "Fleiss'"

    def check(self, state: Evaluation) -> ck.Check:
        """Return the check of the annotators' agreement; what the data set states holds where nothing is annotated."""
        info = state.dataset.info
        if self.kappa is None:
            return ck.kappa(info.kappa, info.kappa_kind or "unnamed")
        return ck.kappa(*self.kappa)


def find_regions(state: Evaluation) -> Regions:
    """Cluster the fixations of each picture and label the clusters."""
    annotations = read_annotations(state.everything)
    by_media: dict[str, list[int]] = defaultdict(list)
    for i, sample in enumerate(state.dataset.samples):
        by_media[sample.media].append(i)
    clusters: list[Cluster] = []
    of_fixations: list[list[str]] = [[NOWHERE] * len(looks) for looks in state.looks]
    for media, samples in by_media.items():
        size = state.looks[samples[0]].size
        if not media or not size[0]:
            continue
        owner = [(i, k) for i in samples for k in np.flatnonzero(state.looks[i].on_picture)]
        points = np.array([(state.looks[i].x_px[k], state.looks[i].y_px[k]) for i, k in owner]).reshape(-1, 2)
        labels = _cluster(state, points, size)
        found = _describe(state, media, points, labels, annotations.get(media, []), size)
        for (i, k), label in zip(owner, labels, strict=True):
            of_fixations[i][k] = found[label].label if label >= 0 else NOWHERE
        clusters += found
    annotators = sorted({a for rows in annotations.values() for a, _, _ in rows})
    return Regions(clusters, of_fixations, tuple(annotators))


Annotation = tuple[str, Points, str]  #: annotator, place (1, 2), label


def read_annotations(dataset: Dataset) -> dict[str, list[Annotation]]:
    """Read what annotators call places, by picture; empty without `annotations.csv`.

    Raises
    ------
    DataError
        If a sample is unknown; it is named.
    """
    path = table_path(dataset.folder, "annotations")
    if path is None:
        return {}
    table = read_table(path)
    strangers = sorted(set(table.text("sample_id")) - dataset.known)
    if strangers:
        raise DataError(str(path), "annotates unknown samples: " + named(strangers))
    found: dict[str, list[Annotation]] = defaultdict(list)
    places = np.stack([table.numbers("x_px"), table.numbers("y_px")], axis=1)
    rows = zip(table.text("sample_id"), table.text("annotator"), table.text("label"), places, strict=True)
    for sample_id, annotator, label, place in rows:
        if sample_id in dataset.row:
            media = dataset.samples[dataset.row[sample_id]].media
            found[media].append((annotator, place[np.newaxis], label))
    return dict(found)


def per_region(state: Evaluation, regions: Regions, scored: Scored) -> list[dict[str, Any]]:
    """Return FCC and cawF1 of each region, and last of all regions by their weights.

    In a region samples are weighted by the mean FCC of their fixations in it. `weight` is the region's share of all
    fixations that lie in one. Below ten samples there is no score, and the region has no part in the weighted mean.
    """
    each = scored.pairs.fcc_per_fixation(state.emotions(scored.system), state.config.score.weights)
    samples = np.array(scored.pairs.sample, dtype=np.int64)
    owner = zip(samples, scored.pairs.fixation, strict=True)
    names = np.array([regions.of_fixations[i][k] for i, k in owner], dtype=object)
    rows = []
    of = {"system": scored.system, "source": scored.source}
    for name in sorted(set(names.tolist()) - {NOWHERE}):
        inside = (names == name) & np.isfinite(each)
        n = np.bincount(samples[inside], minlength=len(scored.table.samples))
        total = np.bincount(samples[inside], weights=each[inside], minlength=len(scored.table.samples))
        fcc = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
        part = scored.table.samples.weighted_by(fcc).take(n > 0)
        score = ev.part(part, state.config.resamples, state.config.seed)
        rows.append({**of, "region": name, "n_fixations": int(inside.sum()), **score})
    total_fixations = sum(row["n_fixations"] for row in rows)
    rows = [{**row, "weight": row["n_fixations"] / total_fixations} for row in rows]
    return [*rows, {**of, **weighted_mean(rows)}] if rows else []


def weighted_mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the row of all regions: means by their weights, over those that have a score."""
    defined = [row for row in rows if np.isfinite(row[cl.HEADLINE]["value"])]
    weights = [row["weight"] for row in defined]
    undefined = [float("nan")] * 2

    def mean(key: str) -> dict[str, Any]:
        values = [row[key]["value"] for row in defined]
        return {"value": float(np.average(values, weights=weights)) if defined else float("nan"), "ci95": undefined}

    return {
        "region": ALL_REGIONS,
        "n_fixations": sum(row["n_fixations"] for row in defined),
        "n": sum(row["n"] for row in defined),
        "weight": sum(weights),
        **{key: mean(key) for key in ("mean_fcc", cl.HEADLINE, "base")},
    }


def over_time(state: Evaluation, scored: Scored) -> list[dict[str, Any]]:
    """Return the headline in sliding windows of the session's time, half of each shared with the next.

    Empty where the samples have no times.
    """
    times = [sample.t_s for sample in state.dataset.samples]
    if not times or not all(times):
        return []
    try:
        t = np.array([float(v) for v in times])
    except ValueError:
        raise DataError(str(state.dataset.folder), "samples: t_s is no number", expected="seconds") from None
    width = state.config.temporal_window_s
    of = {"system": scored.system, "source": scored.source}
    rows = []
    for start in np.arange(t.min(), max(t.max() - width / 2, t.min()) + 1e-9, width / 2):
        chosen = (t >= start) & (t < start + width)
        part = ev.part(scored.table.samples.take(chosen), state.config.resamples, state.config.seed)
        rows.append({**of, "start_s": float(start), "window_s": width, **part})
    return rows


def transitions(state: Evaluation, regions: Regions) -> list[dict[str, Any]]:
    """Return how far each attending system's transitions between regions agree with people's.

    Dice's coefficient of the two multisets of transitions, averaged over the samples that have a transition in either.
    """
    centres: dict[str, list[Cluster]] = defaultdict(list)
    for cluster in regions.clusters:
        centres[cluster.media].append(cluster)
    rows = []
    for run in state.runs:
        if run.points is None:
            continue
        values = []
        for i, sample in enumerate(state.dataset.samples):
            said = assign(run.points[i], centres[sample.media], state, state.looks[i].size)
            values.append(dice(moves(regions.of_fixations[i]), moves(said)))
        n_defined = int(np.isfinite(values).sum())
        rows.append({"system": run.config.name, "agreement": mean_of_defined(values), "n": n_defined})
    return rows


def dynamics_by_emotion(state: Evaluation, regions: Regions) -> list[dict[str, Any]]:
    """Return, per emotion, the means over samples of what looking is like."""
    rows = []
    for label in state.dataset.label_set.labels:
        chosen = [i for i, s in enumerate(state.dataset.samples) if s.label == label and len(state.looks[i])]
        figures = [_dynamics(state, regions, i) for i in chosen]
        means = {key: mean_of_defined([f[key] for f in figures]) for key in (figures[0] if figures else {})}
        rows.append({"emotion": label, "n": len(chosen), **means})
    return rows


def moves(sequence: Sequence[str]) -> Counter[tuple[str, str]]:
    """Return the transitions between different regions of a sequence; what lies in no region is passed over."""
    inside = [name for name in sequence if name != NOWHERE]
    return Counter((a, b) for a, b in pairwise(inside) if a != b)


def dice(one: Counter[tuple[str, str]], other: Counter[tuple[str, str]]) -> float:
    """Return Dice's coefficient of two multisets; `nan` if both are empty."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else float("nan")


def assign(points: Points, clusters: Sequence[Cluster], state: Evaluation, size: tuple[int, int]) -> list[str]:
    """Return the label of the cluster whose centre is nearest to each point, within the clustering's reach."""
    if not clusters or not len(points):
        return [NOWHERE] * len(points)
    apart = distances(points, np.array([(c.x_px, c.y_px) for c in clusters]), size, sphere=state.sphere)
    nearest = apart.argmin(axis=1)
    return [clusters[k].label if apart[i, k] <= state.reach else NOWHERE for i, k in enumerate(nearest)]


def pairwise_agreement(regions: Regions) -> dict[str, float]:
    """Return Cohen's kappa of every two annotators, on the clusters that both labelled."""
    found = {}
    for a, b in combinations(regions.annotators, 2):
        shared = [c.labels for c in regions.clusters if a in c.labels and b in c.labels]
        found[f"{a}, {b}"] = cohen_kappa([s[a] for s in shared], [s[b] for s in shared])
    return found


def _cluster(state: Evaluation, points: Points, size: tuple[int, int]) -> npt.NDArray[np.int64]:
    if state.sphere:
        directions = np.stack(panorama.to_angles(points[:, 0], points[:, 1], *size), axis=1)
        return np.asarray(cluster_directions(directions, state.config.cluster_deg), dtype=np.int64)
    return np.asarray(cluster_pixels(points, state.config.cluster_px), dtype=np.int64)


def _describe(
    state: Evaluation,
    media: str,
    points: Points,
    labels: npt.NDArray[np.int64],
    annotations: Sequence[Annotation],
    size: tuple[int, int],
) -> list[Cluster]:
    clusters = []
    for number in range(int(labels.max(initial=-1)) + 1):
        members = points[labels == number]
        # The member nearest to all others: a mean would leave a cluster that crosses the seam.
        centre = members[distances(members, members, size, sphere=state.sphere).sum(axis=1).argmin()][np.newaxis]
        said: dict[str, tuple[float, str]] = {}
        for annotator, place, label in annotations:
            apart = float(distances(centre, place, size, sphere=state.sphere)[0, 0])
            if apart <= state.reach and apart < said.get(annotator, (np.inf, ""))[0]:
                said[annotator] = apart, label
        names = {annotator: label for annotator, (_, label) in sorted(said.items())}
        x, y = centre[0].tolist()
        clusters.append(Cluster(media, number, x, y, len(members), names))
    return clusters


def _dynamics(state: Evaluation, regions: Regions, i: int) -> dict[str, float]:
    looks, names = state.looks[i], regions.of_fixations[i]
    span_ms = looks.start_ms[-1] + looks.duration_ms[-1] - looks.start_ms[0]
    shifts = moves(names).total()
    return {
        "median_fixation_ms": float(np.median(looks.duration_ms)),
        "fixations_per_s": 1000 * len(looks) / span_ms if span_ms > 0 else float("nan"),
        "shifts_per_s": 1000 * shifts / span_ms if span_ms > 0 else float("nan"),
        "stickiness": stickiness(looks.duration_ms.tolist(), names),
        "transition_entropy_bits": transition_entropy_bits(names),
    }

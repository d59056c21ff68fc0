"""The cached environment: what there is to look at, as embeddings, and how like it the thing looked at is.

A cache belongs to one artefact (embedder *and* precision). Per scale (local windows, whole scenes) it holds a mean, an
optional projection and a faiss index over L2-normalised vectors; `edge.embedding` says how these are made.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import msgspec
import numpy as np
import numpy.typing as npt

from edge.embedding import Matrix, Transform
from edge.errors import CacheError
from edge.files import atomic_folder, decode_document, sha256_file
from edge.manifest import Manifest
from edge.records import NAN, Features, Vector

ENV_FILE = "env.json"
FORMAT = 1
SCALES = ("local", "global")

_FLAT_UP_TO = 500  #: vectors; beyond that the graph is faster, since a flat search reads every vector from memory
_LINKS, _BUILD_DEPTH, _SEARCH_DEPTH = 16, 200, 32  #: of the graph: `M`, `efConstruction`, `efSearch`
_GRAPH_DIM, _CANDIDATES = 64, 16  #: principal components that the graph compares; its finds that are compared in full
#: One row per cached window: its view, place, side (pixels of the view) and region (-1: none).
ENTRY = np.dtype([("view", "<i4"), ("x", "<i4"), ("y", "<i4"), ("side", "<i4"), ("region", "<i4")])


class Match(NamedTuple):
    """The best entries of the environment for one fixation. A similarity that is undefined is nan, with a `reason`.

    `entry_local` and `entry_global` are rows of the cache, -1 where there is none.
    """

    sim_local: float
    sim_global: float
    region: str
    entry_local: int
    entry_global: int
    reason: str


class EnvironmentInfo(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`env.json`: what the cache was made with and holds, and the hash of each of its files and of itself."""

    embedder: str
    embedder_id: str
    model_sha256: str
    precision: str
    embedding: str
    window: str
    scales: tuple[float, ...]
    n_views: int
    n_entries: int
    dim_local: int
    dim_global: int
    regions: tuple[str, ...]
    views: tuple[str, ...]
    separation: dict[str, Any]
    files: dict[str, str] = {}
    format: int = FORMAT
    sha256: str = ""

    def sealed(self) -> EnvironmentInfo:
        """Return it with the hash over all else that it says."""
        bare = msgspec.structs.replace(self, sha256="")
        return msgspec.structs.replace(bare, sha256=hashlib.sha256(msgspec.json.encode(bare)).hexdigest())


def build_index(vectors: Matrix) -> faiss.Index:
    """Return an inner-product index: exact up to 500 vectors, above that a small-world graph (HNSW).

    The graph holds only the first 64 principal components, and the 16 best that it finds are compared in full:
    similarities are exact, and a search reads a twentieth of the memory. It is built on one thread: its links depend on
    the order in which vectors come.
    """
    n, d = vectors.shape
    index: faiss.Index = faiss.IndexFlatIP(d)
    faiss.omp_set_num_threads(1)
    if n > _FLAT_UP_TO:
        graph = faiss.IndexHNSWFlat(min(d, _GRAPH_DIM), _LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction, graph.hnsw.efSearch = _BUILD_DEPTH, _SEARCH_DEPTH
        projection = faiss.PCAMatrix(d, graph.d)
        projection.train(vectors)
        index = faiss.IndexRefineFlat(faiss.IndexPreTransform(projection, graph))
        index.k_factor = _CANDIDATES
    index.add(vectors)
    return index


class EnvironmentCache:
    """An environment that can be looked up.

    Parameters
    ----------
    info : EnvironmentInfo
    transforms, indices : pair
        For the local and for the global scale.
    entries : structured array of ENTRY, (n_entries,)
    pictures : sequence of bytes
        The reference views as JPEG with every face covered, one per view; empty where they were not kept.
    folder : Path, optional
        Where the cache was read from; its pictures are read only when they are asked for.
    """

    def __init__(
        self,
        info: EnvironmentInfo,
        transforms: tuple[Transform, Transform],
        indices: tuple[faiss.Index, faiss.Index],
        entries: npt.NDArray,
        pictures: Sequence[bytes] = (),
        *,
        folder: Path | None = None,
    ) -> None:
        self.info, self.transforms, self.indices, self.entries = info, transforms, indices, entries
        self._pictures, self._folder = pictures, folder

    def lookup(self, local: Vector, global_: Vector) -> Match:
        """Find the best entry for a window and for a scene, each by inner product of unit vectors.

        Parameters
        ----------
        local, global_ : float32 (d_l,), (d_g,)
            Raw features of the artefact that the cache belongs to.

        Returns
        -------
        Match
            Cosines clipped to [-1, 1]. Undefined, with `reason`, are `empty_index`, `dimension_mismatch` (features of
            another size than the cache's), `not_finite`, `zero_vector` and `no_match` (the index found none).
        """
        sim_local, entry_local, reason_local = self._best(0, local)
        sim_global, entry_global, reason_global = self._best(1, global_)
        reason = f"local_{reason_local}" if reason_local else f"global_{reason_global}" if reason_global else ""
        return Match(sim_local, sim_global, self.region_of(entry_local), entry_local, entry_global, reason)

    def nearest(self, local: Vector, k: int) -> list[tuple[int, float]]:
        """Return up to `k` (entry, cosine) for a window, best first; fewer if the cache holds fewer."""
        found = self._search(0, local, k)
        return [] if isinstance(found, str) else found

    def vector(self, entry: int) -> Vector:
        """Return the unit vector of a cached window."""
        return self.indices[0].reconstruct(entry)

    def picture(self, view: int) -> bytes:
        """Return a reference view as JPEG with every face covered, or nothing where it wasn't kept."""
        if self._pictures:
            return self._pictures[view]
        file = (self._folder / _picture_name(view)) if self._folder else None
        return file.read_bytes() if file and file.name in self.info.files else b""

    def region_of(self, entry: int) -> str:
        """Return the name of the region that a cached window lies in, or ""."""
        region = int(self.entries["region"][entry]) if 0 <= entry < len(self.entries) else -1
        return self.info.regions[region] if region >= 0 else ""

    def _best(self, scale: int, features: Vector) -> tuple[float, int, str]:
        found = self._search(scale, features, 1)
        if isinstance(found, str):
            return NAN, -1, found
        if not found:
            return NAN, -1, "no_match"
        entry, similarity = found[0]
        return similarity, entry, ""

    def _search(self, scale: int, features: Vector, k: int) -> list[tuple[int, float]] | str:
        """Return the entries found, or why there can't be any."""
        index, transform = self.indices[scale], self.transforms[scale]
        if index.ntotal == 0:
            return "empty_index"
        if features.shape != (transform.dim,):
            return "dimension_mismatch"
        unit, length = transform.one(features)
        if unit is None:
            return "zero_vector" if math.isfinite(length) else "not_finite"
        similarities, entries = index.search(unit[np.newaxis], min(k, index.ntotal))
        pairs = zip(entries[0].tolist(), similarities[0].tolist(), strict=True)
        return [(entry, min(max(similarity, -1.0), 1.0)) for entry, similarity in pairs if entry >= 0]

    def write(self, folder: Path) -> None:
        """Write the files of this cache into `folder`, `env.json` with their hashes last."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "entries.npy", self.entries, allow_pickle=False)
        for scale, transform, index in zip(SCALES, self.transforms, self.indices, strict=True):
            np.save(folder / f"mean_{scale}.npy", transform.mean)
            if transform.projection is not None:
                np.save(folder / f"projection_{scale}.npy", transform.projection)
            # Not `write_index`, which tells of a full disk as a RuntimeError.
            (folder / f"{scale}.faiss").write_bytes(faiss.serialize_index(index).data)
        for view, picture in enumerate(self._pictures):
            if picture:
                (folder / _picture_name(view)).write_bytes(picture)
        files = {file.name: sha256_file(file) for file in sorted(folder.iterdir())}
        info = msgspec.structs.replace(self.info, files=files).sealed()
        (folder / ENV_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(info), indent=1))

    @classmethod
    def load(cls, folder: Path, manifest: Manifest, *, embedding: str = "") -> EnvironmentCache:
        """Load the cache that belongs to an artefact.

        Parameters
        ----------
        folder : Path
            What `emogaze env build` wrote: one sub-folder per artefact.
        manifest : Manifest
            The embedder in use.
        embedding : str
            The embedding that is asked for; empty = whatever the cache was built with.

        Raises
        ------
        CacheError
            There is no cache of this artefact, a file was altered, or it was built with another embedding.
        """
        part = folder / manifest.name
        if not folder.is_dir():
            problem = "is a file, not a folder" if folder.exists() else "no such folder"
            fix = "name the folder that `emogaze env build VIEWS -o FOLDER` writes"
            raise CacheError(f"environment {folder}", problem, fix=fix)
        fix = f"build one: emogaze env build VIEWS -o FOLDER --set models.embedder={manifest.name}"
        if not (part / ENV_FILE).is_file():
            built = ", ".join(info.embedder for info in list_caches(folder))
            raise CacheError(
                f"environment {folder}", "has no cache of this model", expected=manifest.name, got=built, fix=fix
            )
        info = read_info(part)
        thing = f"environment {part}"
        if info.model_sha256 != manifest.sha256:
            expected, got = manifest.model_id, info.embedder_id
            raise CacheError(thing, "was built by another model", expected=expected, got=got, fix=fix)
        if embedding and embedding != info.embedding:
            fix = "rebuild it, or set score.embedding"
            raise CacheError(thing, "was built with another embedding", expected=embedding, got=info.embedding, fix=fix)
        return cls._read(part, info)

    @classmethod
    def open(cls, part: Path) -> EnvironmentCache:
        """Load one artefact's cache from its sub-folder, for who has its features but not the artefact.

        Raises
        ------
        CacheError
            There is none, or a file was altered.
        """
        return cls._read(part, read_info(part))

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this cache from any other: its artefact, its embedding and the hashes of its files."""
        info = self.info
        files = dict(sorted(info.files.items()))
        return {
            "embedder": info.embedder,
            "model_sha256": info.model_sha256,
            "embedding": info.embedding,
            "files": files,
            "sha256": info.sha256,
        }

    @classmethod
    def _read(cls, folder: Path, info: EnvironmentInfo) -> EnvironmentCache:
        # One query gains nothing from several threads, and their pool's idle spinning takes time from the others.
        faiss.omp_set_num_threads(1)
        transforms, indices = [], []
        for scale in SCALES:
            mean = np.load(folder / f"mean_{scale}.npy", allow_pickle=False)
            name = f"projection_{scale}.npy"
            projection = np.load(folder / name, allow_pickle=False) if name in info.files else None
            transforms.append(Transform(mean, projection))
            indices.append(faiss.read_index(str(folder / f"{scale}.faiss")))
        entries = np.load(folder / "entries.npy", allow_pickle=False)
        return cls(info, (transforms[0], transforms[1]), (indices[0], indices[1]), entries, folder=folder)


class Environments:
    """The caches of one environment, one per artefact: what made the features says which is asked."""

    def __init__(self, caches: Iterable[EnvironmentCache]) -> None:
        self.caches = {cache.info.embedder_id: cache for cache in caches}

    @classmethod
    def load(cls, folder: Path, manifests: Iterable[Manifest], *, embedding: str = "") -> Environments:
        """Load the cache of every artefact that may run; see `EnvironmentCache.load`."""
        return cls(EnvironmentCache.load(folder, manifest, embedding=embedding) for manifest in manifests)

    def match(self, features: Features) -> Match:
        """Find the best entries for features; `model_mismatch` if no cache belongs to the artefact that made them."""
        cache = self.caches.get(features.model_id)
        return undefined("model_mismatch") if cache is None else cache.lookup(features.local, features.global_)

    @property
    def identity(self) -> dict[str, dict[str, Any]]:
        """The identity of each cache, by the name of its artefact."""
        return {cache.info.embedder: cache.identity for cache in self.caches.values()}


def undefined(reason: str) -> Match:
    """Return the match that says why there is none."""
    return Match(NAN, NAN, "", -1, -1, reason)


def store(folder: Path, caches: Iterable[EnvironmentCache]) -> list[EnvironmentInfo]:
    """Write one cache per artefact as `folder`, in one step: the old folder or the whole new one.

    A generator is not started before the place is known to be writable.
    """
    infos = []
    with atomic_folder(folder, marker=f"*/{ENV_FILE}") as part:
        for cache in caches:
            cache.write(part / cache.info.embedder)
            infos.append(cache.info)
    return infos


def _picture_name(view: int) -> str:
    return f"view-{view:05d}.jpg"


def list_caches(folder: Path) -> list[EnvironmentInfo]:
    """Return the descriptions of the caches in `folder`, by artefact; none if it isn't an environment."""
    return [read_info(file.parent) for file in sorted(folder.glob(f"[!.]*/{ENV_FILE}"))]


def read_info(folder: Path) -> EnvironmentInfo:
    """Read one cache's `env.json` and check its files against their hashes.

    Raises
    ------
    CacheError
        It can't be read, is of another format, or a file is missing or altered.
    """
    file = folder / ENV_FILE
    try:
        info = decode_document(file.read_bytes(), msgspec.json.Decoder(EnvironmentInfo).decode)
        hashes = {name: sha256_file(folder / name) for name in info.files}
    except (OSError, msgspec.DecodeError) as error:
        raise CacheError(str(file), f"can't be read: {error}", fix="rebuild it with `emogaze env build`") from error
    if info.format != FORMAT:
        raise CacheError(str(file), "another format", expected=str(FORMAT), got=str(info.format), fix="rebuild it")
    altered = [name for name, value in info.files.items() if hashes[name] != value]
    if altered or not {f"{scale}.faiss" for scale in SCALES} <= set(info.files):
        names = ", ".join(altered) or "index files are not listed"
        raise CacheError(str(folder), f"was altered: {names}", fix="rebuild it with `emogaze env build`")
    if info.sha256 != info.sealed().sha256:
        raise CacheError(
            str(file), "was altered, or written by an earlier version", fix="rebuild it with `emogaze env build`"
        )
    return info

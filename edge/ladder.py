"""The ladder of precisions: which artefacts this device may run, as they were measured on it, from best to fastest.

`emogaze tune` writes it, the governor moves along it. A precision's name says nothing about its speed on a device (INT8
is slower than FP32 on some processors), so only what was measured decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec

from edge.config import Config, ModelsConfig
from edge.errors import ModelError
from edge.files import decode_document, write_atomic

FORMAT = 1


class Rung(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One artefact on one inference runtime, as measured.

    `latency_ms` is the median of one fixation (window and scene), `drift` the median absolute change of FCC per
    fixation against the reference artefact, each with its own environment cache. `None`: not measured.
    """

    artefact: str
    backend: str = ""
    accelerator: str = ""
    threads: int = 1
    latency_ms: float
    latency_p99_ms: float | None = None
    drift: float
    energy_mj: float | None = None
    memory_mb: float | None = None

    def models(self, base: ModelsConfig) -> ModelsConfig:
        """Return the settings with which this rung's artefact is opened."""
        return msgspec.structs.replace(
            base, embedder=self.artefact, backend=self.backend, accelerator=self.accelerator, threads=self.threads
        )


class Ladder(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """`ladder.json`: rungs of growing drift and falling latency; the first is the reference for quality."""

    machine: str
    rungs: tuple[Rung, ...]
    format: int = FORMAT

    def __post_init__(self) -> None:
        if not self.rungs:
            raise ValueError("a ladder needs at least one rung")
        for better, faster in pairwise(self.rungs):
            if not (better.drift <= faster.drift and better.latency_ms > faster.latency_ms):
                raise ValueError(f"rung {faster.artefact} isn't faster than {better.artefact}, or drifts less")

    @property
    def artefacts(self) -> tuple[str, ...]:
        """The artefacts' names, each once, in order."""
        return tuple(dict.fromkeys(rung.artefact for rung in self.rungs))


def non_dominated(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    """Return the rungs that no other beats in both latency and drift, from the least drift to the least latency."""
    kept: list[Rung] = []
    for rung in sorted(rungs, key=lambda r: (r.drift, r.latency_ms)):
        if not kept or rung.latency_ms < kept[-1].latency_ms:
            kept.append(rung)
    return tuple(kept)


def read_ladder(path: Path) -> Ladder:
    """Read `ladder.json`.

    Raises
    ------
    ModelError
        The file is missing, can't be read, or its rungs are in no order.
    """
    fix = "write one with `emogaze tune`"
    try:
        ladder = decode_document(path.read_bytes(), msgspec.json.Decoder(Ladder).decode)
    except OSError as error:
        raise ModelError(f"ladder {path}", f"can't be read: {error.strerror}", fix=fix) from error
    except msgspec.DecodeError as error:
        raise ModelError(f"ladder {path}", f"is no ladder: {error}", fix=fix) from error
    if ladder.format != FORMAT:
        raise ModelError(f"ladder {path}", "another format", expected=str(FORMAT), got=str(ladder.format), fix=fix)
    return ladder


def write_ladder(path: Path, ladder: Ladder) -> None:
    """Write `ladder.json` in one step."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(ladder), indent=1))


def embedders(config: Config) -> list[ModelsConfig]:
    """Return how to open each embedder that may run: the ladder's artefacts, each once, or the configured one."""
    if not config.governor.ladder:
        return [config.models]
    opened: dict[str, ModelsConfig] = {}
    for rung in read_ladder(Path(config.governor.ladder)).rungs:
        opened.setdefault(rung.artefact, rung.models(config.models))
    return list(opened.values())

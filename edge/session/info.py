"""What a session is, said with and without the key to it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from edge.clock import NS_PER_S
from edge.records import Event
from edge.session.chain import read_chain
from edge.session.keyfile import key_file, withdrawal_reason
from edge.session.layout import SessionPaths, read_header
from edge.session.read import Gap, read_items, read_metadata
from edge.session.segment import Picture


def describe(paths: SessionPaths, identity_file: Path | None = None) -> dict[str, Any]:
    """Return the facts of a session, in the order to print them.

    Raises
    ------
    RecordingError
        A newer version wrote it, or the identity doesn't open it.
    """
    chain = read_chain(paths.chain)
    header = read_header(paths, chain)
    created = header.get("created")
    sizes = [path.stat().st_size for path in paths.segments().values()]
    facts: dict[str, Any] = {
        "session": paths.name,
        "format": header.get("format", "no header"),
        "recorded_by": f"emogaze {header['software']}" if "software" in header else "unknown",
        "created": datetime.fromtimestamp(created, timezone.utc).isoformat() if created is not None else "unknown",
        "consent": header.get("consent", "unknown"),
        "segments": len(sizes),
        "bytes": sum(sizes),
        "end": chain.lines[-1]["kind"] if chain.lines else "none",
        "key": key_file(paths, header).state,
    }
    if paths.tombstone.exists():
        facts["withdrawn"] = withdrawal_reason(paths)
    if identity_file is not None:
        facts.update(_contents(paths, identity_file))
    return facts


def _contents(paths: SessionPaths, identity_file: Path) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    pictures: Counter[str] = Counter()
    times: list[int] = []
    n_gaps = n_back = last_ns = 0
    for item in read_items(paths.folder, identity_file, tolerant=True):
        if isinstance(item, Event):
            kinds[item.kind] += 1
            n_back += item.t_emit_ns < last_ns
            last_ns = item.t_emit_ns
            times = [min(*times, item.t_ns), max(*times, item.t_ns)] if times else [item.t_ns, item.t_ns]
        elif isinstance(item, Picture):
            pictures[item.role] += 1
        elif isinstance(item, Gap):
            n_gaps += 1
    metadata = read_metadata(paths.folder, identity_file)
    consent = json.loads(metadata.get("emogaze.consent", {}).get("json", "{}"))
    return {
        "events": dict(kinds),
        "pictures": dict(pictures),
        "duration_s": round((times[-1] - times[0]) / NS_PER_S, 3) if times else 0.0,
        "clock_steps_back": n_back,
        "subject": consent.get("subject", "unknown"),
        "purposes": ", ".join(consent.get("purposes", [])),
        "gaps": n_gaps,
    }

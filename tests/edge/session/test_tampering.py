"""Whatever is done to the files of a session, it is never called complete, and reading ends in one line or none."""

from __future__ import annotations

import random
import shutil

import pytest

from edge.errors import EmoGazeError
from edge.records import Event
from edge.session.layout import SessionPaths
from edge.session.read import read_items, session_identity
from edge.session.verify import verify

TRIES = 60


def tamper(content: bytes, dice: random.Random) -> bytes:
    """Return `content` with one change: a flipped bit, a cut, a doubled, dropped or moved piece, or noise."""
    at, other = sorted(dice.randrange(len(content) + 1) for _ in range(2))
    changes = [
        lambda: content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :],
        lambda: content[:at],
        lambda: content[:at] + content[at:other] * 2 + content[other:],
        lambda: content[:at] + content[other:],
        lambda: content[other:] + content[at:other] + content[:at],
        lambda: content + dice.randbytes(dice.randrange(1, 100)),
        lambda: content[:at] + bytes(other - at) + content[other:],
    ]
    return dice.choice(changes[1:] if at == len(content) else changes)()


@pytest.mark.parametrize("what", ["chain", "segment"])
def test_no_change_goes_unnoticed(study, tmp_path, what):
    original = study.record(400, size=1500, segment_mb=0.25, flush_ms=50)
    identity = session_identity(original, study.identity)
    events = study.events(400, 1500)
    dice = random.Random(7)
    for attempt in range(TRIES):
        paths = SessionPaths(tmp_path / f"copy-{attempt}" / original.name)
        shutil.copytree(original.folder, paths.folder)
        target = paths.chain if what == "chain" else dice.choice(list(paths.segments().values()))
        before = target.read_bytes()
        target.write_bytes(tamper(before, dice))
        if target.read_bytes() == before:
            continue
        try:
            assert verify(paths, identity=identity).state != "complete", attempt
            items = list(read_items(paths.folder, study.identity, tolerant=True))
        except EmoGazeError as error:
            assert "\n" not in str(error)
            continue
        found = [item for item in items if isinstance(item, Event)]
        assert all(event == events[event.seq] for event in found)  # nothing that is read was made up

"""LSL is unauthenticated: the clinical preset wants an explicit line for it, and it steers no cover unless pinned."""

from __future__ import annotations

import numpy as np
import pytest

from edge.config import RedactConfig, load
from edge.errors import ConfigError
from edge.gaze.sources import may_uncover
from edge.pipeline import RedactPipeline
from edge.privacy import Redactor
from edge.records import Face, Fixation, Frame


@pytest.mark.parametrize(
    "line",
    ['gaze.source="lsl:Tobii"', 'aux.streams=["lsl:EEG"]', "sinks.lsl_outlet=true"],
    ids=["gaze", "auxiliary", "outlet"],
)
def test_the_clinical_preset_wants_an_explicit_line(line):
    with pytest.raises(ConfigError, match=r"neither encrypted nor authenticated.*gaze\.allow_lsl = true"):
        load(overrides=[line], preset="clinical")
    load(overrides=[line, "gaze.allow_lsl=true"], preset="clinical")
    load(overrides=[line])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("gaze.csv", True),
        ("lsl:Tobii", False),
        ("lsl:source_id=abc", False),
        ("lsl:hostname=tracker,name=Tobii", False),
        ("lsl:source_id=abc,hostname=tracker", True),
    ],
)
def test_only_a_pinned_stream_may_uncover(source, expected):
    assert may_uncover(source) is expected


@pytest.mark.parametrize(("trusted", "expected"), [(True, False), (False, True)], ids=["trusted", "untrusted"])
def test_the_looked_at_face_stays_covered_unless_gaze_is_trusted(trusted, expected):
    redactor = Redactor(RedactConfig(mode="outside-fixation", hold_ms=0), 5.0, recall=False)
    pipeline = RedactPipeline(redactor, None, may_uncover=trusted)
    face = Face((40.0, 40.0, 40.0, 40.0), 0.9)
    fixation = Fixation(1, 0, 10, 60.0, 60.0, 2.0, 2.0, 0.1, 5, "ongoing")
    pictures = []
    for i in range(3):
        frame = Frame(i, i * 33_000_000, np.zeros((120, 160, 3), np.uint8), "cam")
        pictures += pipeline.redact(frame, [face], fixation)
    pictures += pipeline.finish()
    assert [picture.faces[0].covered for picture in pictures] == [expected] * 3

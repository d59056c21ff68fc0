"""The state machine of the device, told as stories."""

from __future__ import annotations

import pytest

from edge.live.health import Health


def test_a_start_that_goes_well():
    health = Health()
    states = [health.state]
    for phase in ("building", "warming", "running"):
        health.advance(phase)
        states.append(health.state)
    assert states == ["starting", "building", "warming", "ready"]


def test_phases_do_not_go_back():
    health = Health()
    health.advance("warming")
    with pytest.raises(ValueError, match="can't go back from warming to building"):
        health.advance("building")


def test_the_worst_complaint_is_the_state_and_all_are_named():
    health = Health()
    health.advance("running")
    assert health.report("gaze", "degraded", "silent", 10)
    assert health.state == "degraded"
    assert health.report("scene", "failed", "refused", 20)
    assert health.summary == "failed (scene: refused; gaze: silent)"
    assert health.report("scene", "ok", "", 30)
    assert health.summary == "degraded (gaze: silent)"
    assert health.report("gaze", "ok", "", 40)
    assert health.summary == "ready"


def test_a_repeated_complaint_is_no_change_and_keeps_its_beginning():
    health = Health()
    assert health.report("gaze", "degraded", "silent", 10)
    assert not health.report("gaze", "degraded", "silent", 20)
    assert health.report("gaze", "degraded", "jumped", 30)
    assert not health.as_dict()["started"]
    assert health.as_dict()["reasons"] == [
        {"component": "gaze", "level": "degraded", "reason": "jumped", "since_ns": 10}
    ]
    assert not health.report("scene", "ok", "", 40)


def test_a_complaint_while_warming_waits_for_its_turn():
    health = Health()
    health.advance("warming")
    health.report("gaze", "degraded", "silent", 1)
    assert health.state == "warming"
    health.advance("running")
    assert health.state == "degraded"


def test_a_start_that_waits_for_a_source_says_which():
    health = Health()
    health.advance("warming")
    health.waiting = True
    assert health.state == "warming"
    health.report("gaze", "degraded", "no such stream is offered", 1)
    assert health.summary == "degraded (gaze: no such stream is offered)"
    health.waiting = False
    assert health.state == "warming"
    health.report("gaze", "ok", "", 2)
    health.advance("running")
    assert health.as_dict() == {"state": "ready", "started": True, "reasons": []}


def test_a_failure_shows_in_any_phase():
    health = Health()
    health.report("models", "failed", "missing", 1)
    assert health.state == "failed"

"""Private exports and the utility report, from an event log as the runtime writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edge.errors import DataError, RecordingError
from edge.events import SCHEMA, VERSION, encode
from edge.records import Event
from host_tools.__main__ import app
from host_tools.privacy.export import Release, fcc_series, read_recording
from tests.conftest import need

need("opendp")
MS = 10**6


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Thirty fixations of 300 ms, each with a score of 0.8."""
    events = [Event(0, 0, 0, "session", {"schema": SCHEMA, "version": VERSION})]
    for i in range(30):
        t = i * 400 * MS
        fixation = {"fixation_id": i, "start_ns": t, "end_ns": t + 300 * MS, "x_px": 10.0, "y_px": 10.0}
        scored = {"width": 100, "height": 100, "score": {"fixation_id": i, "fcc_now": 0.8}}
        events += [Event(0, t, t, "score", scored), Event(0, t, t, "fixation", fixation)]
    path = tmp_path / "events.ndjson"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in events))
    return path


def call(*arguments: object):
    return CliRunner().invoke(app, ["privacy", *map(str, arguments)])


def test_export_spends_and_then_refuses(log, tmp_path):
    book = ("--ledger", tmp_path / "l.jsonl", "--budget-epsilon", 2)
    options = ("--epsilon", 1.5, "--delta", 1e-6, "--unit", "session", "--grid", "4x3", "--series-s", 1, *book)
    done = call("export", log, *options, "-o", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    body = json.loads((tmp_path / "a.json").read_text())
    assert (body["epsilon"], body["unit"], len(body["heatmap"]), len(body["heatmap"][0])) == (1.5, "session", 3, 4)
    assert body["series"]["method"].startswith("Fourier perturbation")
    assert len(body["series"]["values"]["events.ndjson"]) == 12
    refused = call("export", log, *options, "-o", tmp_path / "b.json")
    assert isinstance(refused.exception, DataError)
    assert not (tmp_path / "b.json").exists()
    assert json.loads(call("balance", "events.ndjson", *book, "--json").stdout)["epsilon"] == 1.5


def test_without_a_series_it_says_what_that_means_for_time(log, tmp_path):
    done = call("export", log, "--epsilon", 1, "--ledger", tmp_path / "l", "-o", tmp_path / "a.json")
    assert "temporal correlation: no series is released" in done.output


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0.0}, {"grid": (2, 2), "delta": 0.0}, {"series_s": 1.0, "unit": "fixation"}],
    ids=["no-epsilon", "map-without-delta", "series-of-fixations"],
)
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match=r"expected|needs delta"):
        Release(**{"epsilon": 1.0, "delta": 1e-6, "unit": "session", **options})


def test_series_fills_steps_without_a_score():
    def score(t_s: float, value: float | None) -> Event:
        return Event(0, int(t_s * 1e9), 0, "score", {"score": {"fcc_now": value}})

    assert fcc_series([score(0, 0.2), score(0.5, 0.4), score(1.5, None), score(3.1, 1.0)], 1.0) == pytest.approx(
        [0.3, 0.3, 0.3, 1.0]
    )


def test_utility_report_gets_better_with_epsilon(log):
    body = json.loads(call("utility", log, "--draws", 30, "--json").stdout)
    assert [row["epsilon"] for row in body["rows"]] == [0.5, 1, 3, 8]
    assert body["truth"]["mean_fcc"] == pytest.approx(0.8)
    errors = [row["statistics"]["n_fixations"]["p95"] for row in body["rows"]]
    assert errors[0] > errors[3]
    assert body["rows"][3]["heatmap_correlation"]["median"] > body["rows"][0]["heatmap_correlation"]["median"]
    assert "median error" in call("utility", log, "--draws", 10).output


def test_a_recording_without_fixations_is_refused(tmp_path):
    path = tmp_path / "events.ndjson"
    path.write_bytes(encode(Event(0, 0, 0, "session", {"schema": SCHEMA, "version": VERSION})) + b"\n")
    with pytest.raises(DataError, match="holds no fixation"):
        read_recording(path, None)
    with pytest.raises(RecordingError, match="is no session"):
        read_recording(tmp_path, None)

"""A panorama through the whole evaluation: flat windows, distances on the sphere, the seam."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from edge.config import GazeConfig
from host_tools.__main__ import app
from host_tools.datasets import layout

pytestmark = pytest.mark.usefixtures("artefacts")
LOOKS = [(179.0, 0.0), (-60.0, 20.0), (10.0, -70.0)]  # azimuth, elevation; the first at the seam


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two systems: one that looks where people look, its first place said from the other side of the seam; one away."""
    folder = tmp_path_factory.mktemp("panorama")
    picture = cv2.resize(cv2.imread(str(data / "panorama" / "P41_2000x1000.jpg")), (800, 400))
    cv2.imwrite(str(folder / "a.png"), picture)
    cv2.imwrite(str(folder / "b.png"), np.ascontiguousarray(picture[:, ::-1]))
    t = np.arange(36) / 120
    rows = [(k * 0.35 + s, azimuth, elevation) for k, (azimuth, elevation) in enumerate(LOOKS) for s in t]
    (folder / "g.csv").write_text("t,x,y\n" + "".join(f"{a:.4f},{b},{c}\n" for a, b, c in rows))
    samples = [
        layout.Sample(n, f"P{n}", label, media=f"{n}.png", gaze="g.csv") for n, label in (("a", "happy"), ("b", "sad"))
    ]
    gaze = GazeConfig(format="csv", time_unit="s", frame="direction", units="deg")
    layout.write(folder, layout.DatasetInfo(name="p", projection="panorama", labels="happy,sad", gaze=gaze), samples)
    (folder / "p.csv").write_text("sample_id,pred\na,happy\nb,happy\n")
    x, y = ((np.array(LOOKS)[:, 0] / 360 + 0.5) * 800, (0.5 - np.array(LOOKS)[:, 1] / 180) * 400)
    for name, shift in (("there", 0.0), ("away", 300.0)):
        lines = [f"{s},{(u + shift) % 800:.3f},{v:.3f}\n" for s in "ab" for u, v in zip(x, y, strict=True)]
        (folder / f"{name}.csv").write_text("sample_id,x_px,y_px\n" + "".join(reversed(lines)))
    (folder / "e.toml").write_text(
        'dataset = "."\nresamples = 100\n'
        + "".join(
            f'[[systems]]\nname = "{n}"\npredictions = "p.csv"\nfixations = "{n}.csv"\n' for n in ("there", "away")
        )
    )
    command = ["evaluate", str(folder / "e.toml"), "-o", str(folder / "out"), "--json"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    document: dict[str, Any] = json.loads(result.output)
    return document


def test_who_looks_where_people_look_fits_whole(results: dict[str, Any]) -> None:
    there, away = (results["systems"][name]["sources"]["predicted"] for name in ("there", "away"))
    assert there["mean_fcc"]["value"] == pytest.approx(1, abs=0.01)
    assert away["mean_fcc"]["value"] < there["mean_fcc"]["value"] - 0.05
    assert there["n_unmatched_fixations"] == 0


def test_fixations_at_the_seam_and_near_the_pole_are_found(results: dict[str, Any]) -> None:
    assert results["dataset"]["n_fixations"] == 6
    assert results["dataset"]["n_fixations_off_picture"] == 0

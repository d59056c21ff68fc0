"""The contract of `python -m host_tools saliency`, seen from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from edge.errors import DataError, EmoGazeError
from host_tools.__main__ import app


def run(*options: str) -> str:
    result = CliRunner().invoke(app, ["saliency", *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    np.save(tmp_path / "m.npy", np.array([[4.0, 3.0], [2.0, 1.0]]))
    (tmp_path / "f.csv").write_text("x,y\n0,0\n0,1\n2,0\n")
    return "--map", str(tmp_path / "m.npy"), "--fixations", str(tmp_path / "f.csv")


def test_contract(files: tuple[str, ...]) -> None:
    out = json.loads(run(*files, "--json"))
    assert out["schema"] == "emogaze.saliency"
    assert out["auc_judd"] == pytest.approx(7 / 8)
    assert (out["n_fixations"], out["n_off_image"], out["jitter"]) == (2, 1, "none")
    assert set(out) >= {"nss", "cc", "sim", "kl"}


def test_text_and_jitter(files: tuple[str, ...]) -> None:
    assert "jitter        7" in run(*files, "--jitter", "7")


def test_fixation_map_is_taken_and_a_density_refused(files: tuple[str, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "counts.npy", np.array([[1, 0], [1, 0]]))
    assert json.loads(run(*files[:3], str(tmp_path / "counts.npy"), "--json"))["auc_judd"] == pytest.approx(7 / 8)
    np.save(tmp_path / "density.npy", np.full((2, 2), 0.25))
    with pytest.raises(DataError, match="this is a density"):
        run(*files[:3], str(tmp_path / "density.npy"))


def test_columns_with_other_names(files: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("trial;fix_x;fix_y\n1;0,5;0,5\n1;0,0;1,0\n")
    named = json.loads(run(*files, "--columns", "x=fix_x, y=fix_y", "--json"))
    assert (named["auc_judd"], named["n_fixations"]) == (pytest.approx(7 / 8), 2)
    assert named["options"]["columns"] == {"x": "fix_x", "y": "fix_y"}


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("x=fix_x", "has no column 'fix_x'; got x, y"),
        ("t=x", "--columns: there is no 't'; expected x=NAME,y=NAME"),
        ("x=", "--columns x=: 'x' names no column; expected x=NAME,y=NAME"),
    ],
    ids=["absent", "unknown-meaning", "no-name"],
)
def test_columns_that_are_not_there(files: tuple[str, ...], columns: str, error: str) -> None:
    with pytest.raises(EmoGazeError, match=error):
        run(*files, "--columns", columns)


def test_map_of_another_size_than_the_picture(files: tuple[str, ...], tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "p.png"), np.zeros((3, 5), np.uint8))
    with pytest.raises(DataError, match=r"another size than .*p.png; expected 5x3; got 2x2"):
        run(*files, "--picture", str(tmp_path / "p.png"))


def test_bad_jitter(files: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match="none, or a seed"):
        run(*files, "--jitter", "some")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [("", "f.csv holds no fixation"), ("-1,0\n0,9\n", "all 2 fixations of .*f.csv lie off the map")],
    ids=["none", "all-off"],
)
def test_without_a_fixation_all_is_undefined_for_a_reason(
    files: tuple[str, ...], rows: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_text("x,y\n" + rows)
    result = CliRunner().invoke(app, ["saliency", *files, "--json"], catch_exceptions=False)
    assert re.fullmatch(f"saliency: undefined, .*{reason}\n", result.stderr)
    out = json.loads(result.stdout)
    assert (out["auc_judd"], out["nss"], out["cc"], out["n_off_image"]) == (None, None, None, rows.count("\n"))
    assert re.search(reason, out["reason"])


def test_every_option_is_named_in_the_answer(files: tuple[str, ...]) -> None:
    options = json.loads(run(*files, "--others", files[3], "--jitter", "7", "--json"))["options"]
    assert options == {
        "map": files[1],
        "fixations": files[3],
        "picture": None,
        "others": files[3],
        "columns": {},
        "sigma_px": 10.0,
        "once": False,
        "jitter": "7",
    }

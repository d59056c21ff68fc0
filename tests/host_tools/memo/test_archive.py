from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edge.errors import DataError
from host_tools.memo.archive import Archive, read_archive
from host_tools.memo.classes import CLASSES
from host_tools.memo.settings import ArchiveSettings, ScoreSettings

KEPT = 3 * 6 * 6 - 5
HEADER = "image,rater,type,degree\n"


def _read(folder: Path, scores: ScoreSettings = ScoreSettings(), **changes: object) -> Archive:  # noqa: B008
    settings = msgspec.structs.replace(ArchiveSettings(asked=108, expected=KEPT, asked_per_cell=6), **changes)
    return read_archive(settings, folder, scores)


@pytest.fixture
def folder(small_archive: Path, tmp_path: Path) -> Path:
    """A copy of the archive that a test may break."""
    return shutil.copytree(small_archive, tmp_path / "archive")


def _remarks(archive: Archive) -> str:
    return "\n".join(archive.integrity["lines"])


def test_a_whole_archive(small_archive: Path) -> None:
    archive = _read(small_archive, index="pictures.csv")
    integrity = archive.integrity
    assert (integrity["kept"], integrity["rated"], integrity["unexplained"]) == (KEPT, KEPT, 0)
    assert integrity["refused"] + integrity["rejected"] == 5
    assert integrity["as_expected"]
    assert integrity["lines"] == [f"{KEPT} pictures kept of 108 asked"]
    assert [p.image for p in archive.kept] == archive.truth.images
    assert (archive.truth.category >= 0).all()
    assert np.isfinite(archive.truth.degree).all()


def test_without_an_index_the_file_names_tell(small_archive: Path) -> None:
    archive = _read(small_archive)
    assert archive.integrity["kept"] == KEPT
    assert archive.integrity["unexplained"] == 5
    assert {p.model for p in archive.pictures} == {"SD1", "SD2", "DL3"}
    picture = archive.pictures[0]
    assert picture.image == f"{picture.model}_{CLASSES[picture.emotion]}_{picture.prompt.split('-')[1]}.jpg"


def test_a_missing_picture_is_counted_and_its_votes_stay_out(folder: Path) -> None:
    gone = sorted((folder / "images").iterdir())[0]
    gone.unlink()
    archive = _read(folder)
    assert archive.integrity["kept"] == KEPT - 1
    for name in ("annotation_emo.csv", "annotation_quality.csv"):
        assert f"1 missing pictures: votes in {name}, no file (first: {gone.name})" in _remarks(archive)
    assert f"{KEPT} expected" in archive.integrity["lines"][0]


def test_a_picture_that_the_index_has_and_the_folder_lacks_is_counted(folder: Path) -> None:
    gone = sorted((folder / "images").iterdir())[0]
    gone.unlink()
    archive = _read(folder, index="pictures.csv")
    assert f"1 missing pictures: in the index, no file (first: {gone.name})" in _remarks(archive)
    assert archive.integrity["kept"] == KEPT


def test_extra_pictures_are_counted(folder: Path) -> None:
    shutil.copy(next((folder / "images").iterdir()), folder / "images" / "holiday.jpg")
    assert "1 extra pictures whose name tells no model and class, left out (first: holiday.jpg)" in _remarks(
        _read(folder)
    )
    assert "1 extra pictures: a file, not in the index, left out (first: holiday.jpg)" in _remarks(
        _read(folder, index="pictures.csv")
    )


def test_a_picture_without_votes_is_counted(folder: Path) -> None:
    for name in ("annotation_emo.csv", "annotation_quality.csv"):
        lines = (folder / name).read_text().splitlines()
        image = lines[1].split(",")[0]
        (folder / name).write_text("\n".join(line for line in lines if not line.startswith(image)))
    archive = _read(folder)
    assert f"1 pictures without any vote (first: {image})" in _remarks(archive)
    assert (archive.truth.category == -1).sum() == 1


def test_an_unknown_emotion_code_is_counted(folder: Path) -> None:
    path = folder / "annotation_emo.csv"
    lines = path.read_text().splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:2], "XXX", "3"])
    path.write_text("\n".join(lines))
    assert "1 category votes with an unknown emotion code, left out (first: XXX)" in _remarks(_read(folder))


def test_columns_are_mapped_and_what_is_not_found_is_said(folder: Path) -> None:
    path = folder / "annotation_emo.csv"
    path.write_text(path.read_text().replace("image,rater,type,degree", "pic,who,feeling,much", 1))
    with pytest.raises(DataError, match="no column for image, category, degree"):
        _read(folder)
    mapping = {"image": "pic", "rater": "who", "category": "feeling"}
    archive = _read(folder, emotion_columns=mapping)
    assert "1 column not found: degree in annotation_emo.csv" in _remarks(archive)
    assert np.isnan(archive.truth.degree).all()


def test_averages_instead_of_votes(folder: Path) -> None:
    images = sorted(p.name for p in (folder / "images").iterdir())
    (folder / "annotation_emo.csv").write_text(
        "image_name,emotion,degree\n" + "".join(f"{Path(i).stem},happy,2.5\n" for i in images)
    )
    (folder / "annotation_quality.csv").write_text("image_name,MOS\n" + "".join(f"{i},3.25\n" for i in images))
    archive = _read(folder, quality_columns={"quality": "MOS"})
    truth = archive.truth
    assert truth.ratings is None
    assert set(truth.degree) == {2.5}
    assert set(truth.quality) == {3.25}
    assert set(truth.category) == {CLASSES.index("HAP")}


def test_a_model_added_as_a_rater_never_enters_the_truth(folder: Path) -> None:
    before = _read(folder).truth
    votes = "".join(f"{p.name},gpt,ANG,5\n" for p in sorted((folder / "images").iterdir()))
    with (folder / "annotation_emo.csv").open("a") as file:
        file.write(votes)
    after = _read(folder, ScoreSettings(model_raters=["gpt"])).truth
    assert after.category.tolist() == before.category.tolist()
    assert after.degree.tolist() == before.degree.tolist()
    assert after.ratings is not None
    assert "gpt" in after.ratings.raters


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pictures": "nowhere"}, "no such folder of pictures"),
        ({"emotion": "nowhere.csv"}, "can't be read"),
    ],
    ids=["folder", "votes"],
)
def test_what_must_be_there(small_archive: Path, changes: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _read(small_archive, **changes)

"""The configuration of a MEMO-Bench run: every setting once, unknown keys refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from edge.config import Section, parse_toml
from edge.errors import ConfigError

T = TypeVar("T", bound=Section)


def _says(text: str, *, ge: float | None = None, le: float | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=text, ge=ge, le=le)


#: How the file names of the public archive are read, unless an index says more.
FILE_NAMES = r"(?P<model>[^_]+)_(?P<emotion>[A-Za-z]+)_(?P<prompt>\d+)"


class ArchiveSettings(Section, frozen=True):
    """Where the pictures and the raters' votes are, and what their columns are called."""

    root: Annotated[str, _says("folder; relative to the configuration file")] = "."
    pictures: Annotated[str, _says("folder of pictures in it")] = "images"
    emotion: Annotated[str, _says("CSV of classes and degrees")] = "annotation_emo.csv"
    quality: Annotated[str, _says("CSV of qualities; empty = none")] = "annotation_quality.csv"
    index: Annotated[str, _says("CSV of image, model, emotion, prompt, style, status; empty = from file names")] = ""
    file_names: Annotated[str, _says("regular expression with groups model, emotion, prompt")] = FILE_NAMES
    emotion_columns: Annotated[dict[str, str], _says("image, rater, category, degree -> name in the file")] = {}
    quality_columns: Annotated[dict[str, str], _says("image, rater, quality -> name in the file")] = {}
    asked: Annotated[int, _says("pictures asked for", ge=0)] = 7200
    expected: Annotated[int, _says("pictures that the archive should hold; 0 = don't check", ge=0)] = 7145
    asked_per_cell: Annotated[int, _says("pictures asked for per model and class", ge=0)] = 100
    scale_low: Annotated[float, _says("lowest score allowed")] = 0.0
    scale_high: Annotated[float, _says("highest score allowed")] = 5.0


class ScoreSettings(Section, frozen=True):
    """How votes become classes and mean opinion scores."""

    screen_on: Annotated[Literal["z", "raw"], _says("screen standardised scores, or raw ones (BT.500)")] = "z"
    std: Annotated[Literal["population", "sample"], _says("standard deviation used in screening")] = "population"
    rescale: Annotated[Literal["bt500", "minmax"], _says("how z becomes 0..5")] = "bt500"
    ties: Annotated[Literal["prompt", "degree"], _says("who wins a tied vote")] = "prompt"
    model_raters: Annotated[list[str], _says("raters that are models: reported, never in the truth")] = []


class StatisticsSettings(Section, frozen=True):
    """Intervals and tests."""

    n_resamples: Annotated[int, _says("bootstrap resamples", ge=100, le=100000)] = 1000
    seed: Annotated[int, _says("seed of the resamples", ge=0)] = 0
    correction: Annotated[
        Literal["holm", "benjamini-hochberg", "bonferroni"], _says("for many comparisons at once")
    ] = "holm"


class GenerationSettings(Section, frozen=True):
    """How text-to-image models are judged."""

    rejected: Annotated[Literal["errors", "left-out"], _says("pictures that review rejected")] = "errors"
    generators: Annotated[str, _says("TOML of the generators' names and versions; empty = those that come along")] = ""


class AnswersSettings(Section, frozen=True, kw_only=True):
    """One multimodal model's answers about the pictures."""

    name: Annotated[str, _says("as it stands in the tables")]
    answers: Annotated[str, _says("CSV of image, category, degree (text as the model gave it)")] = ""
    profile: Annotated[str, _says("profile of a model to ask through an OpenAI-compatible server")] = ""
    artefact: Annotated[str, _says("emotion classifier of the model zoo, as a baseline")] = ""
    checkpoint: Annotated[str, _says("transformers checkpoint, folder or name")] = ""
    open: Annotated[bool, _says("weights are published")] = True


class UnderstandingSettings(Section, frozen=True):
    """Which multimodal models are judged, and how they are asked."""

    models: list[AnswersSettings] = []
    profiles: Annotated[str, _says("TOML of further profiles; empty = those that come along")] = ""
    concurrency: Annotated[int, _says("questions under way at once; 0 = as the profile says", ge=0, le=256)] = 0
    limit: Annotated[int, _says("ask about the first N pictures only; 0 = all", ge=0)] = 0


class MemoSettings(Section, frozen=True):
    """One run of the benchmark."""

    title: Annotated[str, _says("heading of the report")] = "MEMO-Bench"
    archive: ArchiveSettings = ArchiveSettings()
    scores: ScoreSettings = ScoreSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    generation: GenerationSettings = GenerationSettings()
    understanding: UnderstandingSettings = UnderstandingSettings()


def read_settings(path: Path, kind: type[T]) -> T:
    """Read a TOML file of settings.

    Raises
    ------
    ConfigError
        A file that can't be read, an unknown key, or a value of the wrong type or out of bounds.
    """
    try:
        return msgspec.convert(parse_toml(path), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(str(path), str(error).replace("`$.", "`")) from None

"""The configuration of a MEMO-Bench run: every setting once, unknown keys refused."""

from __future__ import annotations

from typing import Annotated, Literal

from edge.config import Section
from host_tools.memo.mos import Options
from host_tools.settings import says

#: How the file names of the public archive are read, unless an index says more.
FILE_NAMES = r"(?P<model>[^_]+)_(?P<emotion>[A-Za-z]+)_(?P<prompt>\d+)"


class ArchiveSettings(Section, frozen=True):
    """Where the pictures and the raters' votes are, and what their columns are called."""

    root: Annotated[str, says("folder; relative to the configuration file")] = "."
    pictures: Annotated[str, says("folder of pictures in it")] = "images"
    emotion: Annotated[str, says("CSV of classes and degrees")] = "annotation_emo.csv"
    quality: Annotated[str, says("CSV of qualities; empty = none")] = "annotation_quality.csv"
    index: Annotated[str, says("CSV of image, model, emotion, prompt, style, status; empty = from file names")] = ""
    file_names: Annotated[str, says("regular expression with groups model, emotion, prompt")] = FILE_NAMES
    emotion_columns: Annotated[dict[str, str], says("image, rater, category, degree -> name in the file")] = {}
    quality_columns: Annotated[dict[str, str], says("image, rater, quality -> name in the file")] = {}
    asked: Annotated[int, says("pictures asked for", ge=0)] = 7200
    expected: Annotated[int, says("pictures that the archive should hold; 0 = don't check", ge=0)] = 7145
    asked_per_cell: Annotated[int, says("pictures asked for per model and class", ge=0)] = 100
    scale_low: Annotated[float, says("lowest score allowed")] = 0.0
    scale_high: Annotated[float, says("highest score allowed")] = 5.0


class ScoreSettings(Section, frozen=True):
    """How votes become classes and mean opinion scores."""

    screen_on: Annotated[Literal["z", "raw"], says("screen standardised scores, or raw ones (BT.500)")] = "z"
    std: Annotated[Literal["population", "sample"], says("standard deviation used in screening")] = "population"
    rescale: Annotated[Literal["bt500", "minmax"], says("how z becomes 0..5")] = "bt500"
    ties: Annotated[Literal["prompt", "degree"], says("who wins a tied vote")] = "prompt"
    model_raters: Annotated[list[str], says("raters that are models: reported, never in the truth")] = []

    @property
    def options(self) -> Options:
        return Options(self.screen_on, self.std, self.rescale)


class StatisticsSettings(Section, frozen=True):
    """Intervals and tests."""

    n_resamples: Annotated[int, says("bootstrap resamples", ge=100, le=100000)] = 1000
    seed: Annotated[int, says("seed of the resamples", ge=0)] = 0
    correction: Annotated[Literal["holm", "benjamini-hochberg", "bonferroni"], says("for many comparisons at once")] = (
        "holm"
    )


class GenerationSettings(Section, frozen=True):
    """How text-to-image models are judged."""

    rejected: Annotated[Literal["errors", "left-out"], says("pictures that review rejected")] = "errors"


class ModelSettings(Section, frozen=True, kw_only=True):
    """One model to judge; exactly one of answers, profile, checkpoint and artefact says where its answers come from."""

    name: Annotated[str, says("as it stands in the tables")]
    answers: Annotated[str, says("CSV of image, category, degree (texts as the model gave them)")] = ""
    profile: Annotated[str, says("profile of a model behind an OpenAI-compatible server")] = ""
    checkpoint: Annotated[str, says("checkpoint for a local transformers pipeline")] = ""
    artefact: Annotated[str, says("emotion classifier of the model zoo, as a baseline")] = ""
    base_url: Annotated[str, says("another server than the profile's")] = ""
    access: Literal["open", "closed"] = "open"


class UnderstandingSettings(Section, frozen=True):
    """Which models are judged, and how they are asked."""

    models: list[ModelSettings] = []
    profiles: Annotated[str, says("TOML of further profiles; empty = those that come along")] = ""
    store: Annotated[str, says("where answers are kept, relative to the configuration file")] = "answers.sqlite"
    limit: Annotated[int, says("ask about the first N pictures only; 0 = all", ge=0)] = 0


class MemoSettings(Section, frozen=True):
    """One run of the benchmark."""

    title: Annotated[str, says("heading of the report")] = "MEMO-Bench"
    archive: ArchiveSettings = ArchiveSettings()
    scores: ScoreSettings = ScoreSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    generation: GenerationSettings = GenerationSettings()
    understanding: UnderstandingSettings = UnderstandingSettings()

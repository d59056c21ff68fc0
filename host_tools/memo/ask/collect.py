"""The answers of all models of a configuration, from wherever each has them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from edge.errors import ConfigError
from host_tools.engine import Engine
from host_tools.memo.archive import Archive
from host_tools.memo.ask import zoo
from host_tools.memo.ask.profiles import Multimodal, Profiles, api_key, load_profiles
from host_tools.memo.ask.questions import load_questions
from host_tools.memo.ask.store import AnswerStore
from host_tools.memo.ask.survey import Asker, Subject, survey
from host_tools.memo.settings import ModelSettings, UnderstandingSettings
from host_tools.memo.understanding import Answers, parse_answers, read_answers

SOURCES = ("answers", "profile", "checkpoint", "artefact")


def collect_answers(
    settings: UnderstandingSettings,
    archive: Archive,
    base: Path,
    *,
    may_ask: bool = True,
    engine: Engine = Engine(),  # noqa: B008 (frozen)
) -> list[Answers]:
    """Return what every model says about the archive's pictures; what had to be asked is said on stderr.

    Parameters
    ----------
    base : Path
        Folder of the configuration, which paths in it start from.
    may_ask : bool
        False: take what the store knows, ask nobody.

    Raises
    ------
    ConfigError
        Before anybody is asked: a model without a source, an unknown profile, a missing key.
    """
    profiles = profiles_of(settings, base)
    chosen = {m.name: choose_profile(m, profiles) for m in settings.models}
    if len(chosen) < len(settings.models):
        names = ", ".join(m.name for m in settings.models)
        raise ConfigError("understanding.models", "two models have the same name", got=names)
    if may_ask:
        for name, profile in chosen.items():
            api_key(profile.api_key_env, f"model {name}")
    subjects = _subjects(archive, settings.limit)
    answers = []
    for model in settings.models:
        if model.answers:
            answers.append(read_answers(base / model.answers, model.name, archive.truth.images, access=model.access))
            continue
        if model.artefact:
            texts = zoo.classify(model.artefact, subjects, replace(engine, done_dir=base / f"{settings.store}.zoo"))
            access = "baseline"
        else:
            texts = _ask(model, chosen[model.name], subjects, base / settings.store, may_ask=may_ask)
            access = chosen[model.name].access
            if not texts and not may_ask:
                print(f"{model.name}: there are no answers yet; left out", file=sys.stderr)
                continue
        answers.append(parse_answers(model.name, texts, archive.truth.images, access=access))
    return answers


def profiles_of(settings: UnderstandingSettings, base: Path) -> Profiles:
    """Return the profiles that come along and those of the configuration."""
    return load_profiles(base / settings.profiles if settings.profiles else None)


def choose_profile(model: ModelSettings, profiles: Profiles) -> Multimodal:
    """Return the profile of a model; one without a server has the limits of the default.

    Raises
    ------
    ConfigError
        If the model names no source or several, or an unknown profile.
    """
    sources = [source for source in SOURCES if getattr(model, source)]
    if len(sources) != 1:
        problem = "says not where its answers come from" if not sources else f"names {' and '.join(sources)}"
        raise ConfigError(f"model {model.name}", problem, expected="exactly one of " + ", ".join(SOURCES))
    if not model.profile:
        return Multimodal(model=model.checkpoint, base_url="", access=model.access, concurrency=1)
    if model.profile not in profiles.multimodal:
        known = ", ".join(sorted(profiles.multimodal))
        raise ConfigError(f"model {model.name}", f"there is no profile {model.profile!r}", expected=f"one of {known}")
    profile = profiles.multimodal[model.profile]
    return msgspec.structs.replace(profile, base_url=model.base_url) if model.base_url else profile


def _subjects(archive: Archive, limit: int) -> list[Subject]:
    pairs = zip(archive.kept, archive.truth.category, strict=True)
    subjects = [Subject(p.image, p.path, int(c)) for p, c in pairs if p.path]
    return subjects[:limit] if limit else subjects


def _ask(
    model: ModelSettings, profile: Multimodal, subjects: Sequence[Subject], path: Path, *, may_ask: bool
) -> dict[str, tuple[str, str]]:
    store = AnswerStore(path)
    asker = _asker(model, profile) if may_ask else None
    try:
        done = survey(model.name, profile, load_questions(profile.template), subjects, store, asker)
    finally:
        store.close()
    for line in done.lines(model.name):
        print(line, file=sys.stderr)
    return done.texts


def _asker(model: ModelSettings, profile: Multimodal) -> Callable[[], Asker]:
    def make() -> Asker:
        if model.checkpoint:
            from host_tools.memo.ask.pipeline import LocalPipeline

            return LocalPipeline(model.checkpoint, profile.max_tokens)
        from host_tools.memo.ask.server import ChatServer

        return ChatServer(model.name, profile)

    return make

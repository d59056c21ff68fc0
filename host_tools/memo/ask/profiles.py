"""Profiles of models: where they are asked, within which limits, and at what price."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from edge.config import Section
from edge.errors import ConfigError
from host_tools.settings import read_settings, says

SHIPPED = Path(__file__).parents[1] / "models.toml"


class Multimodal(Section, frozen=True, kw_only=True):
    """A model that answers questions about a picture through an OpenAI-compatible server."""

    model: Annotated[str, says("name that the server knows it by")]
    base_url: Annotated[str, says("the server's address, up to and with /v1")]
    api_key_env: Annotated[str, says("environment variable that holds the key; empty = no key")] = ""
    access: Literal["open", "closed"] = "open"
    template: Annotated[str, says("set of questions, see questions.toml")] = "memo-1"
    max_px: Annotated[int, says("longest side of a picture that is sent", ge=32, le=8192)] = 1024
    picture_format: Literal["jpeg", "png"] = "jpeg"
    max_tokens: Annotated[int, says("longest answer", ge=1)] = 64
    temperature: Annotated[float, says("0 = the same answer each time, as far as the server can", ge=0, le=2)] = 0.0
    stream: Annotated[bool, says("take answers as a stream")] = False
    timeout_s: Annotated[float, says("an answer that takes longer is asked for again", ge=0.05)] = 60.0
    max_attempts: Annotated[int, says("tries per question", ge=1, le=100)] = 6
    concurrency: Annotated[int, says("questions under way at once", ge=1, le=256)] = 4
    requests_per_minute: Annotated[float, says("0 = no limit", ge=0)] = 0.0
    price_in: Annotated[float, says("price of a million tokens in", ge=0)] | None = None
    price_out: Annotated[float, says("price of a million tokens out", ge=0)] | None = None


class Generator(Section, frozen=True, kw_only=True):
    """A text-to-image model. A code without more stays a code."""

    name: str = ""
    version: str = ""
    access: Literal["", "open", "closed"] = ""
    resolution: Annotated[str, says("WIDTHxHEIGHT")] = ""
    backend: Literal["", "openai", "diffusers"] = ""
    model: Annotated[str, says("name that the back end knows it by")] = ""
    base_url: str = ""
    api_key_env: str = ""
    base64: Annotated[bool, says("ask for base64; off for servers that always send it and refuse the option")] = True
    steps: Annotated[int, says("denoising steps of diffusers; 0 = its default", ge=0)] = 0
    timeout_s: Annotated[float, says("a picture that takes longer is asked for again", ge=0.05)] = 180.0
    max_attempts: Annotated[int, says("tries per picture", ge=1, le=100)] = 4


class Profiles(Section, frozen=True):
    """All profiles of a file."""

    generators: dict[str, Generator] = {}
    multimodal: dict[str, Multimodal] = {}


def load_profiles(extra: Path | None = None) -> Profiles:
    """Read the profiles that come along and those of `extra`, which win.

    Raises
    ------
    ConfigError
        A file that can't be read, an unknown key, a value out of bounds.
    """
    files = [SHIPPED, *([extra] if extra else [])]
    merged: dict[str, Any] = {"generators": {}, "multimodal": {}}
    for file in files:
        read = read_settings(file, Profiles)
        merged["generators"] |= read.generators
        merged["multimodal"] |= read.multimodal
    return Profiles(**merged)


def api_key(variable: str, user: str) -> str:
    """Return the key in an environment variable; servers without keys get a placeholder.

    Raises
    ------
    ConfigError
        If the variable is named and not set.
    """
    if not variable:
        return "none"
    if key := os.environ.get(variable, ""):
        return key
    raise ConfigError(variable, "the API key is missing", fix=f"export it, or take {user} out of the configuration")

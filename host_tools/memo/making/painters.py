"""Who paints: an image API that speaks OpenAI's protocol, or a diffusers pipeline on this machine."""

from __future__ import annotations

import base64
import binascii
import io
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from edge.errors import ConfigError, ModelError
from host_tools.memo.ask.policy import retry_delay_s
from host_tools.memo.ask.profiles import Generator
from host_tools.memo.ask.server import NoAnswerError, open_client, sort_trouble


@dataclass(frozen=True, slots=True)
class Painted:
    """A picture (its file's bytes), or the reason for which the painter refused; how many attempts it took."""

    picture: bytes = b""
    refused: str = ""
    attempts: int = 1


class Painter(Protocol):
    """Whoever turns a prompt into a picture."""

    def paint(self, prompt: str, seed: int) -> Painted: ...


def open_painter(name: str, profile: Generator) -> Painter:
    """Return the painter of a profile.

    Raises
    ------
    ConfigError
        If the profile names no back end, or its library or key is missing.
    """
    if profile.backend == "openai":
        return ServerPainter(name, profile)
    if profile.backend == "diffusers":
        return DiffusersPainter(name, profile)
    raise ConfigError(f"generator {name}", "names no back end", expected="backend = 'openai' or 'diffusers', and model")


class ServerPainter:
    """Paints through an image API. It can't be seeded; the seed is ignored."""

    def __init__(self, name: str, profile: Generator, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self._name, self._profile, self._sleep = name, profile, sleep
        self._client = open_client(profile.base_url, profile.api_key_env, profile.timeout_s, f"generator {name}")

    def paint(self, prompt: str, seed: int) -> Painted:
        """Ask for a picture until there is one, or a refusal.

        Raises
        ------
        NoAnswerError
            If there is neither after `max_attempts`.
        """
        for attempt in range(1, self._profile.max_attempts + 1):
            try:
                return Painted(self._request(prompt), attempts=attempt)
            except Exception as error:
                trouble = sort_trouble(error, self._name)
                if trouble.refused:
                    return Painted(refused=trouble.problem, attempts=attempt)
                if not trouble.again or attempt == self._profile.max_attempts:
                    raise NoAnswerError(f"generator {self._name}", trouble.problem, attempt) from error
                self._sleep(retry_delay_s(attempt, trouble.retry_after_s, random.random()))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _request(self, prompt: str) -> bytes:
        size = {"size": self._profile.resolution} if self._profile.resolution else {}
        form = {"response_format": "b64_json"} if self._profile.base64 else {}
        answer = self._client.images.generate(model=self._profile.model, prompt=prompt, n=1, **size, **form)
        pictures = getattr(answer, "data", None) or [None]
        try:
            return base64.b64decode(pictures[0].b64_json, validate=True)
        except (AttributeError, TypeError, binascii.Error):
            raise NoAnswerError(f"generator {self._name}", "the answer holds no picture in base64", 1) from None


class DiffusersPainter:
    """Paints with a diffusers checkpoint, on the GPU if there is one; equal seeds give equal pictures."""

    def __init__(self, name: str, profile: Generator) -> None:
        try:
            import torch
            from diffusers import AutoPipelineForText2Image
        except ImportError as error:
            fix = "pip install 'emogaze-edge[diffusers]'"
            raise ConfigError("diffusers", f"is missing ({error.name})", fix=fix) from None
        self._profile = profile
        self._make_generator = torch.Generator
        gpu = torch.cuda.is_available()
        try:
            pipeline: Any = AutoPipelineForText2Image.from_pretrained(
                profile.model, torch_dtype=torch.float16 if gpu else torch.float32
            )
        except (OSError, ValueError, RuntimeError) as error:
            problem = f"{profile.model} can't be loaded: {str(error).splitlines()[0]}"
            raise ModelError(f"generator {name}", problem) from error
        self._pipeline = pipeline.to("cuda" if gpu else "cpu")
        self._pipeline.set_progress_bar_config(disable=True)

    def paint(self, prompt: str, seed: int) -> Painted:
        """Paint; what the checkpoint's safety checker covers is a refusal."""
        options: dict[str, Any] = {"generator": self._make_generator("cpu").manual_seed(seed)}
        if self._profile.steps:
            options["num_inference_steps"] = self._profile.steps
        if self._profile.resolution:
            options["width"], options["height"] = map(int, self._profile.resolution.split("x"))
        result = self._pipeline(prompt, **options)
        if any(getattr(result, "nsfw_content_detected", None) or []):
            return Painted(refused="the checkpoint's safety checker covered the picture")
        content = io.BytesIO()
        result.images[0].save(content, "PNG")
        return Painted(content.getvalue())

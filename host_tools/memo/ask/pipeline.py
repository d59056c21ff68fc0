"""A local checkpoint asked through a transformers pipeline, for machines without a server."""

from __future__ import annotations

import io
import time
from typing import Any

from edge.errors import ConfigError, ModelError
from host_tools.memo.ask.store import Reply


class LocalPipeline:
    """Asks one checkpoint, one question after another.

    Raises
    ------
    ConfigError
        If transformers, torch or Pillow is missing.
    ModelError
        If the checkpoint can't be loaded.
    """

    def __init__(self, checkpoint: str, max_tokens: int) -> None:
        try:
            from PIL import Image
            from transformers import pipeline
        except ImportError as error:
            fix = "pip install 'emogaze-edge[transformers]'"
            raise ConfigError("transformers", f"is missing ({error.name})", fix=fix) from None
        self._open_picture = Image.open
        self._max_tokens = max_tokens
        try:
            self._pipeline: Any = pipeline("image-text-to-text", model=checkpoint)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(f"checkpoint {checkpoint}", f"can't be loaded: {str(error).splitlines()[0]}") from error

    def ask(self, system: str, question: str, picture: bytes) -> Reply:
        """Ask about a picture."""
        image = self._open_picture(io.BytesIO(picture)).convert("RGB")
        content = [{"type": "image", "image": image}, {"type": "text", "text": f"{system} {question}".strip()}]
        start = time.monotonic()
        answer = self._pipeline(
            text=[{"role": "user", "content": content}],
            max_new_tokens=self._max_tokens,
            return_full_text=False,
            generate_kwargs={"do_sample": False},
        )
        return Reply(str(answer[0]["generated_text"]), "", latency_ms=1000 * (time.monotonic() - start))

"""One question to an OpenAI-compatible server, with everything that can go wrong sorted into kinds."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edge.errors import ConfigError, EmoGazeError
from host_tools.memo.ask.policy import RateLimiter, retry_delay_s
from host_tools.memo.ask.profiles import Multimodal, api_key
from host_tools.memo.ask.store import Reply

#: Codes by which servers say that they won't, for policy's sake.
REFUSALS = frozenset(
    {"content_filter", "content_policy_violation", "moderation_blocked", "ResponsibleAIPolicyViolation"}
)


class NoAnswerError(EmoGazeError):
    """A question got no answer although it was asked often enough; the next question may."""

    def __init__(self, thing: str, problem: str, attempts: int) -> None:
        super().__init__(thing, problem)
        self.attempts = attempts


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong, whether asking again may help, how long the server asks to wait, and whether it won't do it."""

    problem: str
    again: bool
    retry_after_s: float | None = None
    refused: bool = False


class _BrokenAnswerError(Exception):
    """A reply that is no whole answer: not JSON, without choices, a stream that ends early."""


class ChatServer:
    """Asks one model. Use from many threads.

    Raises
    ------
    ConfigError
        If the key or the client library is missing; while asking, if the server refuses the key or has no such model.
    """

    def __init__(self, name: str, profile: Multimodal, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self.name, self.profile = name, profile
        self._sleep = sleep
        self._limiter = RateLimiter(profile.requests_per_minute, time.monotonic, sleep)
        self._client = open_client(profile.base_url, profile.api_key_env, profile.timeout_s, name)

    def ask(self, system: str, question: str, picture: bytes) -> Reply:
        """Ask about a picture until there is an answer.

        Raises
        ------
        NoAnswerError
            If there is none after `max_attempts`, or the server won't take this picture.
        """
        messages = self._messages(system, question, picture)
        for attempt in range(1, self.profile.max_attempts + 1):
            self._limiter.wait()
            start = time.monotonic()
            try:
                text, finish, tokens = self._stream(messages) if self.profile.stream else self._whole(messages)
            except Exception as error:
                trouble = sort_trouble(error, self.name)
                if trouble.refused:
                    return Reply(trouble.problem, "refused", attempts=attempt)
                if not trouble.again or attempt == self.profile.max_attempts:
                    raise NoAnswerError(f"model {self.name}", trouble.problem, attempt) from error
                delay = retry_delay_s(attempt, trouble.retry_after_s, random.random())
                if trouble.retry_after_s is not None:
                    self._limiter.hold(trouble.retry_after_s)
                self._sleep(delay)
                continue
            latency_ms = 1000 * (time.monotonic() - start)
            return Reply(text, finish, *tokens, self._cost(*tokens), attempt, latency_ms)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _messages(self, system: str, question: str, picture: bytes) -> list[dict[str, Any]]:
        url = f"data:image/{self.profile.picture_format};base64,{base64.b64encode(picture).decode()}"
        content = [{"type": "text", "text": question}, {"type": "image_url", "image_url": {"url": url}}]
        first = [{"role": "system", "content": system}] if system else []
        return [*first, {"role": "user", "content": content}]

    def _request(self, messages: list[dict[str, Any]], **more: Any) -> Any:
        return self._client.chat.completions.create(
            model=self.profile.model,
            messages=messages,
            max_tokens=self.profile.max_tokens,
            temperature=self.profile.temperature,
            **more,
        )

    def _whole(self, messages: list[dict[str, Any]]) -> tuple[str, str, tuple[int | None, int | None]]:
        answer = self._request(messages)
        choices = getattr(answer, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise _BrokenAnswerError("the answer holds no choice")
        message = choices[0].message
        text = getattr(message, "content", None) or getattr(message, "refusal", None) or ""
        return text, str(getattr(choices[0], "finish_reason", None) or ""), _tokens(getattr(answer, "usage", None))

    def _stream(self, messages: list[dict[str, Any]]) -> tuple[str, str, tuple[int | None, int | None]]:
        parts, finish, usage = [], "", None
        with self._request(messages, stream=True, stream_options={"include_usage": True}) as chunks:
            for chunk in chunks:
                usage = getattr(chunk, "usage", None) or usage
                for choice in getattr(chunk, "choices", None) or []:
                    delta = getattr(choice, "delta", None)
                    parts.append(getattr(delta, "content", None) or getattr(delta, "refusal", None) or "")
                    finish = getattr(choice, "finish_reason", None) or finish
        if not finish:
            raise _BrokenAnswerError("the stream ended before the answer did")
        return "".join(parts), finish, _tokens(usage)

    def _cost(self, tokens_in: int | None, tokens_out: int | None) -> float | None:
        profile = self.profile
        if tokens_in is None or tokens_out is None or profile.price_in is None or profile.price_out is None:
            return None
        return (tokens_in * profile.price_in + tokens_out * profile.price_out) / 1e6


def open_client(base_url: str, api_key_env: str, timeout_s: float, user: str) -> Any:
    """Return the official client for a server; it doesn't retry by itself, so that each attempt is counted here."""
    key = api_key(api_key_env, user)
    try:
        from openai import OpenAI
    except ImportError:
        raise ConfigError("openai", "the client library is missing", fix="pip install 'emogaze-edge[host]'") from None
    return OpenAI(base_url=base_url, api_key=key, timeout=timeout_s, max_retries=0)


def sort_trouble(error: Exception, name: str) -> Trouble:
    """Say what an error means.

    Raises
    ------
    ConfigError
        What no other question can mend: a key that isn't taken, a model that isn't there.
    Exception
        `error` itself if it is none of the server's.
    """
    import openai

    match error:
        case openai.APITimeoutError():
            return Trouble("no answer in time", again=True)
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            raise ConfigError(f"model {name}", f"the server refuses the key ({error.status_code})") from error
        case openai.NotFoundError():
            raise ConfigError(f"model {name}", f"the server has no such model or address: {_says(error)}") from error
        case openai.RateLimitError():
            return Trouble(f"too many requests: {_says(error)}", again=True, retry_after_s=_retry_after(error))
        case openai.APIStatusError():
            if getattr(error, "code", None) in REFUSALS:
                return Trouble(f"refused by the server: {_says(error)}", again=False, refused=True)
            again = error.status_code >= 500 or error.status_code in (408, 409, 425)
            return Trouble(f"server error {error.status_code}: {_says(error)}", again, _retry_after(error))
        case openai.APIConnectionError():
            return Trouble(f"the connection failed: {error.__cause__ or error}", again=True)
        case openai.APIError() | _BrokenAnswerError() | json.JSONDecodeError():
            return Trouble(f"a broken answer: {str(error)[:200]}", again=True)
    if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2"):
        return Trouble(f"the connection broke off: {error}", again=True)
    raise error


def _tokens(usage: Any) -> tuple[int | None, int | None]:
    return getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)


def _says(error: Any) -> str:
    return str(getattr(error, "message", error)).replace("\n", " ")[:200]


def _retry_after(error: Any) -> float | None:
    text = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(text))
    except ValueError:
        return None

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.errors import ConfigError
from host_tools.memo.ask.profiles import Multimodal
from host_tools.memo.ask.server import ChatServer, NoAnswerError
from host_tools.memo.parser import parse_category

PICTURE = b"not looked at"


def _ask(base_url: str, **changes: object):  # type: ignore[no-untyped-def]
    slept: list[float] = []
    profile = Multimodal(**{"model": "m", "base_url": base_url, "timeout_s": 20.0, "max_attempts": 3} | changes)  # type: ignore[arg-type]
    server = ChatServer("test", profile, sleep=slept.append)
    try:
        return server.ask("system", "Which one?", PICTURE), slept
    finally:
        server.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_with_its_price(chat_server: Callable, stream: bool) -> None:
    reply, slept = _ask(chat_server("ok").base_url, stream=stream, price_in=2.0, price_out=10.0)
    assert (reply.text, reply.finish, reply.attempts, slept) == ("happy", "stop", 1, [])
    assert (reply.tokens_in, reply.tokens_out) == (100, 2)
    assert reply.cost == pytest.approx((100 * 2 + 2 * 10) / 1e6)


def test_without_a_price_the_cost_is_unknown(chat_server: Callable) -> None:
    assert _ask(chat_server("ok").base_url)[0].cost is None


@pytest.mark.parametrize("trouble", ["429", "500", "hang", "malformed", "no-json", "empty", "cut-body"], ids=str)
def test_trouble_is_survived_by_asking_again(chat_server: Callable, trouble: str) -> None:
    server = chat_server(f"{trouble},ok")
    reply, slept = _ask(server.base_url, timeout_s=2.0 if trouble == "hang" else 20.0)
    assert (reply.text, reply.attempts) == ("happy", 2)
    assert len(server.requests()) == 2
    assert slept[0] >= 0.5  # after a 429 the next request also waits for its turn
    assert len(slept) == (2 if trouble == "429" else 1)


def test_a_stream_that_breaks_off_is_no_answer(chat_server: Callable) -> None:
    reply, _ = _ask(chat_server("cut-stream,ok").base_url, stream=True)
    assert (reply.text, reply.attempts) == ("happy", 2)


@pytest.mark.parametrize(
    ("behaviours", "attempts", "says"),
    [
        ("429", 3, "too many requests: .*slow down"),
        ("500", 3, "server error 500: .*out of memory"),
        ("malformed", 3, "a broken answer"),
        ("400", 1, "server error 400: .*picture too large"),
    ],
    ids=["429", "500", "malformed", "400-at-once"],
)
def test_no_answer_after_all_attempts(chat_server: Callable, behaviours: str, attempts: int, says: str) -> None:
    server = chat_server(behaviours)
    with pytest.raises(NoAnswerError, match=says) as caught:
        _ask(server.base_url)
    assert caught.value.attempts == len(server.requests()) == attempts


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [("401", "the server refuses the key"), ("404", "no such model or address: .*no such model")],
    ids=["key", "model"],
)
def test_what_no_other_question_can_mend_stops_everything(chat_server: Callable, behaviour: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _ask(chat_server(behaviour).base_url)


def test_a_refusal_for_policy_is_an_answer(chat_server: Callable) -> None:
    reply, _ = _ask(chat_server("policy").base_url)
    assert (reply.finish, reply.attempts) == ("refused", 1)
    assert parse_category(reply.text).status == "refused"


def test_nobody_listens() -> None:
    with pytest.raises(NoAnswerError, match="the connection failed"):
        _ask("http://127.0.0.1:1/v1", max_attempts=1)


def test_a_missing_key_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"^NO_SUCH_KEY: the API key is missing; export it, or take test out"):
        _ask("http://127.0.0.1:1/v1", api_key_env="NO_SUCH_KEY")

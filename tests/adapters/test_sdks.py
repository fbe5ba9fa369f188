"""Guarded SDK clients: one retry owner, and views that survive what SDKs do with clients."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

import mulligan

pytestmark = pytest.mark.real

MESSAGES: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def guard(clock) -> mulligan.Guard:
    return mulligan.Guard("model", attempts=4)


def ask(client: Any, **options: Any) -> Any:
    return client.messages.create(model="m", max_tokens=9, messages=MESSAGES, **options)


def made(server: Any, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="k", **options)


@pytest.mark.parametrize("fault", ["503", "reset", "close", "429"])
def test_a_wrapped_client_makes_as_many_requests_as_the_policy_allows(fault, fault_server, guard):
    """R-B17."""
    fault_server.set(fault)
    with guard.wrap(made(fault_server)) as client, pytest.raises(anthropic.APIError) as caught:
        ask(client)
    story = mulligan.story(caught.value)
    assert story is not None
    assert fault_server.totals.requests == story.attempts == 4


@pytest.mark.parametrize("fault", ["503", "429(retry-after-ms=5)", "408", "409", "reset"])
def test_inner_retries_that_were_left_on_add_no_request(fault, fault_server, guard):
    """The HTTP client is guarded, and the SDK around it was made with its defaults."""
    fault_server.set(fault)
    with guard.wrap(httpx2.Client()) as http, pytest.raises(anthropic.APIError) as caught:
        ask(made(fault_server, http_client=http))
    story = mulligan.story(caught.value)
    assert story is not None
    assert fault_server.totals.requests == story.attempts
    assert {entry.attempt["x-stainless-retry-count"] for entry in fault_server.requests} == {"0"}


def test_the_same_question_asked_again_by_the_program_is_asked_again(fault_server, guard):
    """The fence stands between an SDK and its own repeats only."""
    fault_server.set("resetx4, ok")
    with guard.wrap(httpx2.Client()) as http:
        client = made(fault_server, http_client=http, max_retries=0)
        with pytest.raises(anthropic.APIConnectionError):
            ask(client)
        assert ask(client).stop_reason == "end_turn"
    assert fault_server.totals.requests == 5


def test_two_tasks_with_the_same_question_do_not_fence_each_other(fault_server, guard):
    fault_server.set("@first -> reset; ok")

    async def main() -> str:
        async with httpx2.AsyncClient() as plain:
            client = anthropic.AsyncAnthropic(
                base_url=fault_server.url, api_key="k", http_client=guard.wrap(plain)
            )
            failing = asyncio.create_task(_aask(client, "first"))
            with pytest.raises(anthropic.APIConnectionError):
                await failing
            # An SDK that repeats in another context is another call.
            headers = {"x-stainless-retry-count": "1"}
            return str((await _aask(client, "second", **headers)).stop_reason)

    assert asyncio.run(main()) == "end_turn"


async def _aask(client: Any, who: str, **headers: str) -> Any:
    return await client.messages.create(
        model="m",
        max_tokens=9,
        messages=MESSAGES,
        extra_headers={"x-client": who, **headers},
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda client: client.with_options(max_retries=2),
        lambda client: client.with_options(timeout=7, max_retries=5),
        lambda client: client.copy(default_headers={"x-a": "1"}),
        lambda client: client,
    ],
    ids=["retries", "timeout", "copy", "itself"],
)
def test_a_view_survives_what_is_made_of_it(change, fault_server, guard):
    fault_server.set("503")
    view = change(guard.wrap(made(fault_server)))
    gc.collect()  # the original and the first view are gone; the connections must not be
    for _ in range(2):
        fault_server.clear()
        with pytest.raises(anthropic.APIStatusError):
            ask(view)
        assert fault_server.totals.requests <= 4
    view.close()


def test_raw_and_streaming_responses_are_guarded(fault_server, guard):
    fault_server.set("503, ok, 503, ok, 503, ok")
    with guard.wrap(made(fault_server)) as client:
        raw = client.messages.with_raw_response.create(model="m", max_tokens=9, messages=MESSAGES)
        assert raw.parse().stop_reason == "end_turn"
        with client.messages.with_streaming_response.create(
            model="m", max_tokens=9, messages=MESSAGES
        ) as response:
            assert b"end_turn" in response.read()
        with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            assert stream.get_final_message().stop_reason == "end_turn"
    assert fault_server.totals.requests == 6


def test_the_original_client_is_not_changed(fault_server, guard):
    fault_server.set("503(retry-after-ms=5)")
    with made(fault_server) as client:
        inner = client._client
        view = guard.wrap(client)
        assert (view.max_retries, client.max_retries) == (0, 2)
        assert client._client is inner
        assert type(view) is anthropic.Anthropic
        with pytest.raises(anthropic.APIStatusError):
            ask(client)
        assert fault_server.totals.requests == 3
        assert "mulligan" not in repr(vars(inner))


def test_wrapping_a_view_again_is_harmless(fault_server, guard):
    with made(fault_server) as client:
        view = guard.wrap(client)
        assert guard.wrap(view) is view
        fault_server.set("503")
        other = mulligan.Guard("model", attempts=2).wrap(view)
        with pytest.raises(anthropic.APIStatusError):
            ask(other)
        assert fault_server.totals.requests == 2


def test_timeouts_of_the_sdk_are_kept(fault_server, guard):
    with guard.wrap(made(fault_server, timeout=7.5)) as client:
        assert client.timeout == 7.5
        ask(client)


def test_an_openai_client_on_the_old_httpx_is_guarded(fault_server, guard):
    fault_server.set("503x2, ok")
    legacy: Any = httpx.Client()
    with openai.OpenAI(base_url=f"{fault_server.url}/v1", api_key="k", http_client=legacy) as plain:
        client = guard.wrap(plain)
        answer = client.chat.completions.create(model="m", messages=MESSAGES)
    assert answer.choices[0].finish_reason == "stop"


def test_an_open_circuit_is_a_connection_error_of_the_sdk(fault_server, clock):
    """What lets a fallback to another provider happen."""
    fault_server.set("503")
    breaker = mulligan.Breaker(failures=2)
    guard = mulligan.Guard("model", attempts=2, breaker=breaker, when_open="fail")
    with guard.wrap(made(fault_server)) as client:
        with pytest.raises(anthropic.InternalServerError):
            ask(client)
        with pytest.raises(anthropic.APIConnectionError) as caught:
            ask(client)
    assert isinstance(caught.value.__cause__, mulligan.CircuitOpen)
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    assert fault_server.totals.requests == 2


def google(server: Any, attempts: int | None = None) -> genai.Client:
    retries = None
    if attempts is not None:
        retries = types.HttpRetryOptions(attempts=attempts, initial_delay=0.01, max_delay=0.02)
    options = types.HttpOptions(base_url=server.url, retry_options=retries)
    return genai.Client(api_key="k", http_options=options)


def test_google_genai_is_guarded_and_its_own_retries_are_off(fault_server, guard):
    fault_server.set("503")
    client = guard.wrap(google(fault_server, attempts=5))
    gc.collect()
    with pytest.raises(genai.errors.ServerError) as caught:
        client.models.generate_content(model="m", contents="hi")
    story = mulligan.story(caught.value)
    assert story is not None
    assert fault_server.totals.requests == story.attempts == 4
    # A call that asks for retries of its own gets none, either.
    fault_server.clear()
    own = types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=5, initial_delay=0.01))
    with pytest.raises(genai.errors.ServerError):
        client.models.generate_content(
            model="m", contents="hi", config=types.GenerateContentConfig(http_options=own)
        )
    assert fault_server.totals.requests <= 4


def test_google_genai_async_is_guarded_and_does_not_resend_a_lost_post(fault_server, guard):
    """Its aiohttp session sends a POST again by itself after a lost connection."""
    fault_server.set("reset")
    plain = google(fault_server)
    client = guard.wrap(plain)

    async def main() -> None:
        try:
            await client.aio.models.generate_content(model="m", contents="hi")
        finally:
            await client.aio.aclose()

    with pytest.raises(httpx2.ReadError) as caught:
        asyncio.run(main())
    story = mulligan.story(caught.value)
    assert story is not None
    assert fault_server.totals.requests == story.attempts == 4
    assert type(client._api_client) is not type(plain._api_client)


def test_a_google_client_is_not_closed_when_its_view_is_collected(fault_server, guard):
    plain = google(fault_server)
    guard.wrap(plain)
    gc.collect()
    plain.models.generate_content(model="m", contents="hi")
    client = guard.wrap(plain)
    assert guard.wrap(client) is client
    del plain
    gc.collect()
    client.models.generate_content(model="m", contents="hi")
    assert fault_server.totals.requests == 2


def test_closing_a_view_of_a_google_client_closes_the_connections(fault_server, guard):
    plain = google(fault_server)
    guard.wrap(plain).close()
    assert plain._api_client._httpx_client.is_closed


def test_chunked_answers_of_google_are_whole(fault_server, guard):
    client = guard.wrap(google(fault_server))
    chunks = list(client.models.generate_content_stream(model="m", contents="hi"))
    assert chunks[-1].candidates
    assert fault_server.totals.requests == 1


def test_what_cannot_be_wrapped_is_refused_with_the_way_that_works(guard):
    import aiohttp
    import urllib3

    async def session() -> Any:
        async with aiohttp.ClientSession() as made:
            return guard.wrap(made)

    with pytest.raises(
        mulligan.SettingError,
        match=r"^wrap cannot guard a aiohttp\.ClientSession that is made: make the session with "
        r"middlewares=\[mulligan\.adapters\.aiohttp\.guarded\(guard\)\]$",
    ):
        asyncio.run(session())
    with pytest.raises(mulligan.SettingError, match=r"^wrap cannot guard a urllib3\.PoolManager"):
        guard.wrap(urllib3.PoolManager())
    with pytest.raises(mulligan.SettingError, match=r"^wrap does not know builtins\.object: "):
        guard.wrap(object())
    with pytest.raises(mulligan.SettingError, match=r"^wrap needs a client, and got the class"):
        guard.wrap(httpx.Client)


def test_a_call_that_would_pass_unguarded_is_refused_and_names_wrap(fault_server, guard):
    with (
        made(fault_server) as client,
        pytest.raises(
            mulligan.SettingError, match=r"guard the client itself, guard\.wrap\(client\)"
        ),
    ):
        guard.call(client.messages.stream, model="m", max_tokens=9, messages=MESSAGES)

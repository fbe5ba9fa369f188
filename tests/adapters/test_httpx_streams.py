"""Streams of model APIs through guarded clients: restarted unseen, or broken off with a story."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

import mulligan

from .conftest import events

pytestmark = [
    pytest.mark.real,
    # httpx nests async generators, and trio warns of those whose stream is not read to its end.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

MESSAGES: Any = [{"role": "user", "content": "hi"}]
PATHS = {
    "anthropic": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}


def body_for(api: str) -> dict[str, Any]:
    match api:
        case "responses":
            return {"model": "m", "input": "hi", "stream": True}
        case "gemini":
            return {"contents": [{"parts": [{"text": "hi"}]}]}
        case _:
            return {"model": "m", "max_tokens": 9, "messages": MESSAGES, "stream": True}


@pytest.fixture(params=PATHS)
def api(request) -> str:
    return str(request.param)


@pytest.fixture
def whole(fault_server, api) -> bytes:
    """The stream as it is when nothing fails."""
    with httpx2.Client() as client:
        body = client.post(fault_server.url + PATHS[api], json=body_for(api)).content
    fault_server.clear()
    return body


@pytest.mark.parametrize("fault", ["drop(0)", "cut(0)", "truncate(0)", "error-event(0)", "503"])
def test_a_stream_that_breaks_before_its_content_is_restarted_unseen(
    client, api, fault, whole, fault_server, clock
):
    fault_server.set(f"{fault}x2, ok")
    url = fault_server.url + PATHS[api]
    _, body = client.stream(mulligan.Guard("model"), url, body_for(api))
    assert fault_server.totals.requests == 3
    assert [event.keys() for event in events(body)] == [event.keys() for event in events(whole)]


@pytest.mark.parametrize("fault", ["drop", "cut", "truncate"])
def test_a_stream_that_breaks_after_content_is_broken_off_and_not_replayed(
    client, api, fault, fault_server, clock
):
    fault_server.set(f"{fault}(6)")
    url = fault_server.url + PATHS[api]
    with pytest.raises(client.library.TransportError) as caught:
        client.stream(mulligan.Guard("model"), url, body_for(api))
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts, fault_server.totals.requests) == ("committed", 1, 1)
    assert story.delivered >= 1
    assert story.because.startswith(f"the stream broke after {story.delivered} content event")


def test_silence_is_a_timeout_though_pings_come(fault_server, clock):
    """Pings keep the connection alive; the model has stopped speaking."""
    lines = [b'event: message_start\ndata: {"type": "message_start", "message": {}}\n\n']
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'

    def serve(request: httpx2.Request) -> httpx2.Response:
        def body() -> Any:
            yield from lines
            for _ in range(100):
                clock.advance(1)
                yield ping

        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=body())

    guard = mulligan.Guard("pinging", attempts=2)
    with httpx2.Client(transport=httpx2.MockTransport(serve), timeout=30) as client:
        view = guard.wrap(client)
        with (
            pytest.raises(httpx2.ReadTimeout, match=r"^no content for 31 s, only pings\n"),
            view.stream("POST", "http://model/v1/messages", json=body_for("anthropic")),
        ):
            pass


def test_a_silent_stream_is_restarted_before_its_content(client, fault_server, clock):
    fault_server.set("stall(1)x2, ok")
    url = fault_server.url + PATHS["anthropic"]
    _, body = client.stream(mulligan.Guard("model"), url, timeout=0.3)
    assert b"message_stop" in body
    assert fault_server.totals.requests == 3


def test_a_body_without_events_is_committed_with_its_head(client, fault_server, clock):
    fault_server.set("503, cut(1)")
    url = f"{fault_server.url}/v1/messages"
    with pytest.raises(client.library.RemoteProtocolError) as caught:
        client.stream(mulligan.Guard("model"), url, {"model": "m", "messages": MESSAGES})
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts) == ("committed", 2)


def test_a_final_refusal_can_be_streamed_by_the_caller(client, fault_server, clock):
    fault_server.set("context")
    response, body = client.stream(mulligan.Guard("model"), fault_server.url + PATHS["anthropic"])
    assert (response.status_code, fault_server.totals.requests) == (400, 1)
    assert b"prompt is too long" in body


def test_a_streamed_refusal_behind_a_redirect_is_doubtful(client, fault_server, clock):
    fault_server.set("POST /invoices -> 303(/invoices); GET /invoices -> 503")
    url, options = f"{fault_server.url}/invoices", {"follow_redirects": True}
    response, _ = client.stream(mulligan.Guard("shop"), url, {"eur": 7}, **options)
    assert response.extensions["mulligan"].ending == "maybe_applied"
    assert [entry.method for entry in fault_server.requests] == ["POST", "GET"]


def test_a_stream_that_the_caller_leaves_is_neither_success_nor_failure(fault_server, clock):
    fault_server.set("drip(0.01)")
    counters = mulligan.Counters()
    guard = mulligan.Guard("left", listeners=[counters])
    with httpx2.Client() as client:
        view = guard.wrap(client)
        url = fault_server.url + PATHS["anthropic"]
        with view.stream("POST", url, json=body_for("anthropic")) as response:
            next(response.iter_bytes())
        assert view.get(f"{fault_server.url}/invoices").status_code == 200
    assert "Failed" not in str(counters)


# The SDKs


def anthropic_texts(url: str, guard: mulligan.Guard) -> list[str]:
    with guard.wrap(anthropic.Anthropic(base_url=url, api_key="k")) as client:
        stream = client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)
        return [event.type for event in stream]


def chat_texts(url: str, guard: mulligan.Guard) -> list[Any]:
    with guard.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="k")) as client:
        chunks = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return [chunk.choices[0].finish_reason for chunk in chunks]


def responses_texts(url: str, guard: mulligan.Guard) -> list[str]:
    with guard.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="k")) as client:
        return [event.type for event in client.responses.create(model="m", input="hi", stream=True)]


def gemini_texts(url: str, guard: mulligan.Guard) -> list[Any]:
    options = types.HttpOptions(base_url=url)
    with guard.wrap(genai.Client(api_key="k", http_options=options)) as client:
        return list(client.models.generate_content_stream(model="m", contents="hi"))


SDKS = {
    "anthropic": (anthropic_texts, anthropic.APIStatusError, httpx2.RemoteProtocolError),
    "chat": (chat_texts, openai.APIError, openai.APIConnectionError),
    "responses": (responses_texts, openai.APIConnectionError, openai.APIConnectionError),
    "gemini": (gemini_texts, genai.errors.ServerError, httpx2.RemoteProtocolError),
}


@pytest.mark.parametrize("after", [0, 6])
def test_an_error_event_leaves_as_the_exception_of_the_sdk(api, after, fault_server, clock):
    ask, error, _ = SDKS[api]
    fault_server.set(f"error-event({after})")
    with pytest.raises(error) as caught:
        ask(fault_server.url, mulligan.Guard("model", attempts=3))
    story = mulligan.story(caught.value)
    assert story is not None
    expected = (3, "exhausted") if after == 0 else (1, "committed")
    assert (story.attempts, story.ending) == expected
    assert fault_server.totals.requests == story.attempts


def test_a_stream_that_ends_too_soon_is_an_exception_of_the_sdk(api, fault_server, clock):
    """Without a guard, each of the four SDKs takes it for the whole answer."""
    ask, _, error = SDKS[api]
    fault_server.set("truncate(6)")
    with pytest.raises(error) as caught:
        ask(fault_server.url, mulligan.Guard("model"))
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.delivered > 0) == ("committed", True)


def test_a_whole_stream_reaches_the_sdk_unchanged(api, fault_server, clock):
    ask, _, _ = SDKS[api]
    assert len(ask(fault_server.url, mulligan.Guard("model"))) > 3
    assert fault_server.totals.requests == 1


def test_the_story_names_the_tool_calls_that_were_complete(fault_server, clock):
    # The fault server breaks off answers in words only, so a transport of our own cuts this one.
    fault_server.set('call(search, {"q": "x"})')
    with httpx2.Client() as plain:
        url = fault_server.url + PATHS["anthropic"]
        whole = plain.post(url, json=body_for("anthropic")).content
    cut = whole[: whole.index(b"event: message_delta")]
    guard = mulligan.Guard("model")

    def serve(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=iter([cut]))

    with httpx2.Client(transport=httpx2.MockTransport(serve)) as plain:
        client = anthropic.Anthropic(api_key="k", http_client=guard.wrap(plain))
        with pytest.raises(httpx2.RemoteProtocolError) as caught:
            list(client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True))
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.tool_calls == ("search",)
    assert story.because.endswith("complete tool calls: search; not replayed")


def test_a_success_after_a_broken_stream_closes_the_breaker(fault_server, clock):
    """A stream that was read to its end counts, though SDKs close it before its last byte."""
    guard = mulligan.Guard("model", breaker=mulligan.Breaker(failures=2), when_open="fail")
    fault_server.set("drop(6)x2, ok")
    for _ in range(2):
        with pytest.raises(openai.APIConnectionError):
            chat_texts(fault_server.url, guard)
    with pytest.raises(openai.APIConnectionError) as caught:
        chat_texts(fault_server.url, guard)
    assert isinstance(caught.value.__cause__, mulligan.CircuitOpen)
    clock.advance(60)
    chat_texts(fault_server.url, guard)
    chat_texts(fault_server.url, guard)
    assert fault_server.totals.requests == 4


def test_an_async_stream_that_is_cancelled_gives_its_connection_back(fault_server, clock):
    fault_server.set("stall(4)x3, ok")
    guard = mulligan.Guard("model")

    async def main() -> list[str]:
        limits = httpx2.Limits(max_connections=1)
        async with httpx2.AsyncClient(limits=limits, timeout=30) as plain:
            client = anthropic.AsyncAnthropic(
                base_url=fault_server.url, api_key="k", http_client=guard.wrap(plain)
            )

            async def ask() -> list[str]:
                async with client.messages.stream(
                    model="m", max_tokens=9, messages=MESSAGES
                ) as stream:
                    return [event.type async for event in stream]

            for _ in range(3):
                asking = asyncio.create_task(ask())
                await asyncio.sleep(0.15)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
            return await asyncio.wait_for(ask(), 20)

    assert asyncio.run(main())[-1] == "message_stop"


def test_a_stream_of_a_wrapped_client_is_continued_by_resume(fault_server, clock):
    """The guard of the client breaks it off; the guard around the call knows how to go on."""
    fault_server.set("truncate(6), ok(and the rest)")

    def texts(messages):
        ask: Any = client.messages.create
        with ask(model="m", max_tokens=9, messages=messages, stream=True) as stream:
            for event in stream:
                if event.type == "content_block_delta":
                    yield event.delta.text

    def rest(delivered, messages):
        return texts([*messages, {"role": "assistant", "content": "".join(delivered)}])

    guard = mulligan.Guard("model", effects="idempotent", resume=rest, clock=clock)
    with anthropic.Anthropic(base_url=fault_server.url, api_key="k") as own:
        client = guard.but(resume=None).wrap(own)
        with guard.stream(texts, MESSAGES) as stream:
            said = list(stream)
    assert len(fault_server.requests) == 2
    assert "".join(said).endswith("and the rest")
    assert "".join(said) != "and the rest"

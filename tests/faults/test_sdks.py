"""The real SDKs against the server, their own retries at default.

Every case is a client of its own with a rule of its own, and they run at once: an SDK that backs
off for half a second holds up no client. What they do was measured in November 2026 with
anthropic 2.8, openai 3.49 and google-genai 3.1.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from mulligan.testing import FaultServer

pytestmark = pytest.mark.real

# The SDKs take this header on whatever they retry; it spares the test their backoff.
SOON = "retry-after-ms=5"


@dataclass(frozen=True)
class Case:
    sdk: str
    fault: str
    requests: int
    ends: str


def same(fault: str, requests: int, ends: str) -> list[Case]:
    """Both of OpenAI's APIs end the same way."""
    return [Case(sdk, fault, requests, ends) for sdk in ("chat", "responses")]


PLAIN = [
    Case("anthropic", "ok", 1, "end_turn"),
    Case("anthropic", f"429({SOON})", 3, "anthropic.RateLimitError 429"),
    Case("anthropic", "429(retry-after=0.01)", 3, "anthropic.RateLimitError 429"),
    Case("anthropic", "429(retry-after=date+1s)", 3, "anthropic.RateLimitError 429"),
    Case("anthropic", "429(x-should-retry=false)", 1, "anthropic.RateLimitError 429"),
    Case("anthropic", f"400(x-should-retry=true, {SOON})", 3, "anthropic.BadRequestError 400"),
    Case("anthropic", f"500({SOON})", 3, "anthropic.InternalServerError 500"),
    Case("anthropic", f"503({SOON})", 3, "anthropic.ServiceUnavailableError 503"),
    Case("anthropic", f"overloaded({SOON})", 3, "anthropic.OverloadedError 529"),
    Case("anthropic", f"408({SOON})", 3, "anthropic.RequestTimeoutError 408"),
    Case("anthropic", f"409({SOON})", 3, "anthropic.ConflictError 409"),
    Case("anthropic", "html", 3, "anthropic.InternalServerError 502"),
    Case("anthropic", "billing", 1, "anthropic.BadRequestError 400"),
    Case("anthropic", "context", 1, "anthropic.BadRequestError 400"),
    Case("anthropic", "policy", 1, "anthropic.BadRequestError 400"),
    Case("anthropic", "auth", 1, "anthropic.AuthenticationError 401"),
    Case("anthropic", "403", 1, "anthropic.PermissionDeniedError 403"),
    Case("anthropic", "model", 1, "anthropic.NotFoundError 404"),
    Case("anthropic", "reset", 3, "anthropic.APIConnectionError None"),
    Case("anthropic", "close", 3, "anthropic.APIConnectionError None"),
    Case("anthropic", "hang", 3, "anthropic.APITimeoutError None"),
    Case("anthropic", "badjson", 1, "json.JSONDecodeError None"),
    Case("anthropic", "empty", 1, "end_turn"),
    Case("chat", "ok", 1, "stop"),
    Case("responses", "ok", 1, "completed"),
    *same(f"429({SOON})", 3, "openai.RateLimitError 429"),
    *same("429(retry-after=0.01)", 3, "openai.RateLimitError 429"),
    *same("429(retry-after=121)", 1, "openai.RateLimitError 429"),
    *same("429(x-should-retry=false)", 1, "openai.RateLimitError 429"),
    *same(f"400(x-should-retry=true, {SOON})", 3, "openai.BadRequestError 400"),
    *same(f"500({SOON})", 3, "openai.InternalServerError 500"),
    *same(f"overloaded({SOON})", 3, "openai.InternalServerError 503"),
    *same(f"408({SOON})", 3, "openai.APIStatusError 408"),
    *same(f"409({SOON})", 3, "openai.ConflictError 409"),
    *same("html", 3, "openai.InternalServerError 502"),
    # A dead account is asked three times.
    *same(f"billing({SOON})", 3, "openai.RateLimitError 429"),
    *same(f"plan(7d, {SOON})", 3, "openai.RateLimitError 429"),
    *same("context", 1, "openai.BadRequestError 400"),
    *same("policy", 1, "openai.BadRequestError 400"),
    *same("auth", 1, "openai.AuthenticationError 401"),
    *same("403", 1, "openai.PermissionDeniedError 403"),
    *same("model", 1, "openai.NotFoundError 404"),
    *same("reset", 3, "openai.APIConnectionError None"),
    *same("close", 3, "openai.APIConnectionError None"),
    *same("hang", 3, "openai.APITimeoutError None"),
    *same("badjson", 1, "json.JSONDecodeError None"),
    Case("gemini", "ok", 1, "STOP"),
    Case("gemini", "429(2)", 1, "google.ClientError 429"),
    Case("gemini", "plan(1h)", 1, "google.ClientError 429"),
    Case("gemini", "billing", 1, "google.ClientError 429"),
    Case("gemini", "500", 1, "google.ServerError 500"),
    Case("gemini", "overloaded", 1, "google.ServerError 503"),
    Case("gemini", "html", 1, "google.ServerError 502"),
    Case("gemini", "auth", 1, "google.ClientError 400"),
    Case("gemini", "context", 1, "google.ClientError 400"),
    Case("gemini", "model", 1, "google.ClientError 404"),
    Case("gemini", "policy", 1, "PROHIBITED_CONTENT"),
    Case("gemini", "reset", 1, "httpx2.ReadError None"),
    Case("gemini", "close", 1, "httpx2.RemoteProtocolError None"),
    Case("gemini", "hang", 1, "httpx2.ReadTimeout None"),
    Case("gemini", "badjson", 1, "json.JSONDecodeError None"),
    # With its own retries switched on it makes five attempts, and reads no hint.
    Case("gemini+retries", "503", 5, "google.ServerError 503"),
    Case("gemini+retries", "plan(1h)", 5, "google.ClientError 429"),
]

# After the first event no SDK tries again.
STREAMS = [
    Case("anthropic", "ok", 1, "end_turn"),
    Case("anthropic", "drop", 1, "httpx2.ReadError None"),
    Case("anthropic", "cut", 1, "httpx2.RemoteProtocolError None"),
    Case("anthropic", "stall", 1, "httpx2.ReadTimeout None"),
    Case("anthropic", "truncate", 1, "None"),
    Case("anthropic", "error-event", 1, "anthropic.APIStatusError 200"),
    Case("anthropic", "badjson", 1, "no events"),
    Case("anthropic", "drip(0.01)", 1, "end_turn"),
    Case("chat", "ok", 1, "stop"),
    Case("responses", "ok", 1, "response.completed"),
    *same("drop", 1, "openai.APIConnectionError None"),
    *same("cut", 1, "openai.APIConnectionError None"),
    *same("stall", 1, "openai.APITimeoutError None"),
    Case("chat", "truncate", 1, "None"),
    Case("responses", "truncate", 1, "response.output_text.delta"),
    Case("chat", "error-event", 1, "openai.APIError None"),
    # No exception at all.
    Case("responses", "error-event", 1, "response.failed"),
    *same("badjson", 1, "json.JSONDecodeError None"),
    Case("gemini", "ok", 1, "STOP"),
    Case("gemini", "drop", 1, "httpx2.ReadError None"),
    Case("gemini", "cut", 1, "httpx2.RemoteProtocolError None"),
    Case("gemini", "stall", 1, "httpx2.ReadTimeout None"),
    Case("gemini", "truncate", 1, "None"),
    Case("gemini", "error-event", 1, "google.ServerError 503"),
    Case("gemini", "badjson", 1, "google.UnknownApiResponseError None"),
]

MESSAGES: Any = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True)
class Clients:
    """One client an SDK, for all cases: making a hundred of them takes longer than the calls."""

    anthropic: anthropic.Anthropic
    openai: openai.OpenAI
    google: genai.Client


Ask = Callable[[Clients, dict[str, str], float], object]


def anthropic_plain(clients: Clients, who: dict[str, str], timeout: float) -> object:
    return clients.anthropic.messages.create(
        model="m", max_tokens=9, messages=MESSAGES, extra_headers=who, timeout=timeout
    ).stop_reason


def anthropic_stream(clients: Clients, who: dict[str, str], timeout: float) -> object:
    stream = clients.anthropic.messages.create(
        model="m", max_tokens=9, messages=MESSAGES, extra_headers=who, timeout=timeout, stream=True
    )
    events = list(stream)
    if not events:
        return "no events"
    return next((e.delta.stop_reason for e in events if e.type == "message_delta"), None)


def chat_plain(clients: Clients, who: dict[str, str], timeout: float) -> object:
    found = clients.openai.chat.completions.create(
        model="m", messages=MESSAGES, extra_headers=who, timeout=timeout
    )
    return found.choices[0].finish_reason


def chat_stream(clients: Clients, who: dict[str, str], timeout: float) -> object:
    chunks = clients.openai.chat.completions.create(
        model="m", messages=MESSAGES, extra_headers=who, timeout=timeout, stream=True
    )
    return list(chunks)[-1].choices[0].finish_reason


def responses_plain(clients: Clients, who: dict[str, str], timeout: float) -> object:
    found = clients.openai.responses.create(
        model="m", input="hi", extra_headers=who, timeout=timeout
    )
    return found.status


def responses_stream(clients: Clients, who: dict[str, str], timeout: float) -> object:
    events = clients.openai.responses.create(
        model="m", input="hi", extra_headers=who, timeout=timeout, stream=True
    )
    return list(events)[-1].type


def google_config(
    who: dict[str, str], timeout: float, retries: types.HttpRetryOptions | None = None
) -> types.GenerateContentConfig:
    options = types.HttpOptions(headers=who, timeout=round(timeout * 1000), retry_options=retries)
    return types.GenerateContentConfig(http_options=options)


def gemini_plain(clients: Clients, who: dict[str, str], timeout: float) -> object:
    found = clients.google.models.generate_content(
        model="m", contents="hi", config=google_config(who, timeout)
    )
    if found.prompt_feedback and found.prompt_feedback.block_reason:
        return found.prompt_feedback.block_reason.name
    return ending(found)


def gemini_retrying(clients: Clients, who: dict[str, str], timeout: float) -> object:
    quick = types.HttpRetryOptions(attempts=5, initial_delay=0.01, max_delay=0.05, jitter=0.01)
    return clients.google.models.generate_content(
        model="m", contents="hi", config=google_config(who, timeout, quick)
    )


def gemini_stream(clients: Clients, who: dict[str, str], timeout: float) -> object:
    found = clients.google.models.generate_content_stream(
        model="m", contents="hi", config=google_config(who, timeout)
    )
    return ending(list(found)[-1])


def ending(found: types.GenerateContentResponse) -> object:
    reason = found.candidates[0].finish_reason if found.candidates else None
    return reason.name if reason else None


ASKING: dict[tuple[str, bool], Ask] = {
    ("anthropic", False): anthropic_plain,
    ("anthropic", True): anthropic_stream,
    ("chat", False): chat_plain,
    ("chat", True): chat_stream,
    ("responses", False): responses_plain,
    ("responses", True): responses_stream,
    ("gemini", False): gemini_plain,
    ("gemini", True): gemini_stream,
    ("gemini+retries", False): gemini_retrying,
}
CASES = [(case, False) for case in PLAIN] + [(case, True) for case in STREAMS]


def outcome(clients: Clients, case: Case, *, is_stream: bool, client: str) -> str:
    """How the call ended: the answer's ending, or the exception's family, name and status."""
    # Short enough to wait for; but a stream must have begun before it can stall, and on a machine
    # that runs three suites at once that alone has taken more than half a second.
    timeout = {"hang": 0.6, "stall": 4.0}.get(case.fault, 20.0)
    try:
        return str(ASKING[case.sdk, is_stream](clients, {"x-client": client}, timeout))
    except Exception as error:  # noqa: BLE001 -- whatever it is, is the outcome
        status = getattr(error, "status_code", getattr(error, "code", None))
        status = status if isinstance(status, int) else None
        return f"{type(error).__module__.partition('.')[0]}.{type(error).__name__} {status}"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[int, str]]:
    """Requests and ending of every case, by client; all of them run at once."""
    script = "; ".join(f"@c{number} -> {case.fault}" for number, (case, _) in enumerate(CASES))
    with (
        FaultServer(script) as server,
        anthropic.Anthropic(base_url=server.url, api_key="k") as first,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as second,
        genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url)) as third,
        ThreadPoolExecutor(len(CASES)) as pool,
    ):
        clients = Clients(first, second, third)
        running = {
            f"c{number}": pool.submit(
                outcome, clients, case, is_stream=is_stream, client=f"c{number}"
            )
            for number, (case, is_stream) in enumerate(CASES)
        }
        ends = {client: future.result(60) for client, future in running.items()}
        made = [entry.client for entry in server.requests]
    return {client: (made.count(client), end) for client, end in ends.items()}


@pytest.mark.parametrize(
    ("number", "case"),
    [
        pytest.param(number, case, id=f"{case.sdk}{'-stream' * is_stream}-{case.fault}")
        for number, (case, is_stream) in enumerate(CASES)
    ],
)
def test_each_sdk_makes_as_many_requests_and_raises_what_was_measured(outcomes, number, case):
    assert outcomes[f"c{number}"] == (case.requests, case.ends)


def test_anthropic_sleeps_for_as_long_as_it_is_told(fault_server):
    """E-A14: no bound of its own; three thousand six hundred seconds are slept in silence."""
    fault_server.set("429(retry-after=3600)")

    async def ask() -> None:
        async with anthropic.AsyncAnthropic(base_url=fault_server.url, api_key="k") as client:
            await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)

    async def watch() -> None:
        asking = asyncio.create_task(ask())
        # A busy machine takes its time until the first request; then comes the silence.
        while not fault_server.totals.requests:
            done, _ = await asyncio.wait([asking], timeout=0.01)
            assert not done
        done, _ = await asyncio.wait([asking], timeout=0.5)
        assert not done
        asking.cancel()

    asyncio.run(asyncio.wait_for(watch(), 60))
    assert fault_server.totals.requests == 1


def test_a_refused_connection_is_tried_three_times_and_never_arrives(fault_server):
    port_closed = "refuse(3s)"
    fault_server.set(port_closed)
    client = openai.OpenAI(base_url=f"{fault_server.url}/v1", api_key="k")
    with client, pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert [entry.outcome for entry in fault_server.requests] == ["refuse(for=3s)"]


def test_an_sdk_sees_the_headers_that_the_server_sent(fault_server):
    fault_server.set("429(retry-after=7, header.x-odd=1)")
    with (
        anthropic.Anthropic(base_url=fault_server.url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.RateLimitError) as caught,
    ):
        client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.headers["x-odd"] == "1"
    assert caught.value.request_id is not None


def test_the_ledger_shows_the_inner_attempt(fault_server):
    """E-C7: nesting is visible from outside."""
    fault_server.set(f"500({SOON})")
    with (
        anthropic.Anthropic(base_url=fault_server.url, api_key="k") as client,
        pytest.raises(anthropic.InternalServerError),
    ):
        client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    counts = [entry.attempt["x-stainless-retry-count"] for entry in fault_server.requests]
    assert counts == ["0", "1", "2"]


def test_a_tool_is_asked_for_and_its_result_accepted(fault_server):
    fault_server.set('call(add, {"a": 1}),ok(The sum is two.)')
    tools: Any = [{"name": "add", "input_schema": {"type": "object", "properties": {}}}]
    with anthropic.Anthropic(base_url=fault_server.url, api_key="k") as client:
        asked = client.messages.create(model="m", max_tokens=9, messages=MESSAGES, tools=tools)
        call = asked.content[0]
        assert call.type == "tool_use"
        assert (call.name, call.input) == ("add", {"a": 1})
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "2"}
        answered = client.messages.create(
            model="m",
            max_tokens=9,
            messages=[
                *MESSAGES,
                {"role": "assistant", "content": asked.content},
                {"role": "user", "content": [result]},
            ],
            tools=tools,
        )
    assert answered.content[0].type == "text"
    assert answered.content[0].text == "The sum is two."
    assert answered.usage.input_tokens > asked.usage.input_tokens


def anthropic_call(server: FaultServer) -> tuple[str, object]:
    with anthropic.Anthropic(base_url=server.url, api_key="k") as client:
        with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            block = stream.get_final_message().content[0]
        assert block.type == "tool_use"
        return block.name, block.input


def responses_call(server: FaultServer) -> tuple[str, object]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        with client.responses.stream(model="m", input="hi") as stream:
            item = stream.get_final_response().output[0]
        assert item.type == "function_call"
        return item.name, json.loads(item.arguments)


def chat_call(server: FaultServer) -> tuple[str, object]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
            calls = stream.get_final_completion().choices[0].message.tool_calls
        assert calls
        return calls[0].function.name, json.loads(calls[0].function.arguments)


def gemini_call(server: FaultServer) -> tuple[str | None, object]:
    options = types.HttpOptions(base_url=server.url)
    with genai.Client(api_key="k", http_options=options) as client:
        chunks = client.models.generate_content_stream(model="m", contents="hi")
        [call] = [call for chunk in chunks for call in chunk.function_calls or ()]
        return call.name, call.args


@pytest.mark.parametrize("ask", [anthropic_call, responses_call, chat_call, gemini_call])
def test_every_sdk_puts_a_streamed_tool_call_together(fault_server, ask):
    fault_server.set('call(search, {"q": "a, b"})')
    assert ask(fault_server) == ("search", {"q": "a, b"})


def test_tokens_are_counted_plausibly(fault_server):
    long: Any = [{"role": "user", "content": "word " * 400}]
    with anthropic.Anthropic(base_url=fault_server.url, api_key="k") as client:
        counted = client.messages.count_tokens(model="m", messages=long).input_tokens
        used = client.messages.create(model="m", max_tokens=9, messages=long).usage.input_tokens
    assert 400 <= counted == used <= 600
    assert fault_server.totals.requests == 1

"""Real exceptions of real packages, raised by driving them against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import anthropic
import botocore.config
import botocore.session
import httpcore
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
from google import genai

from mulligan.classify.exceptions import classify_exception
from mulligan.classify.http import judge_response
from mulligan.core.failure import Failure, Kind, Reach

pytestmark = pytest.mark.real
NOW = 1_794_772_800.0
SOON = 0.5  # for an answer
PATIENT = 30.0  # to connect: a busy machine takes its time even on the loopback


def failure_of(call: Callable[[], object]) -> Failure:
    with pytest.raises(Exception) as caught:  # noqa: PT011 -- which one, is the question
        call()
    return classify_exception(caught.value, now=NOW)


def with_httpx(module: Any) -> Callable[[str], object]:
    def get(url: str) -> object:
        timeout = module.Timeout(SOON, connect=PATIENT)
        with module.Client(timeout=timeout, trust_env=False) as client:
            return client.get(url).raise_for_status()

    return get


def with_async_httpx2(url: str) -> object:
    async def get() -> object:
        timeout = httpx2.Timeout(SOON, connect=PATIENT)
        async with httpx2.AsyncClient(timeout=timeout, trust_env=False) as client:
            return (await client.get(url)).raise_for_status()

    return asyncio.run(get())


def with_requests(url: str) -> object:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, timeout=(PATIENT, SOON))
        answer.raise_for_status()
        return answer


def with_urllib3(url: str) -> object:
    with urllib3.PoolManager() as pool:
        timeout = urllib3.Timeout(connect=PATIENT, read=SOON)
        return pool.request("GET", url, timeout=timeout, retries=False)


def with_aiohttp(url: str) -> object:
    async def get() -> object:
        timeout = aiohttp.ClientTimeout(sock_read=SOON)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            answer.raise_for_status()
            return await answer.read()

    return asyncio.run(get())


def with_openai(url: str) -> object:
    with openai.OpenAI(
        api_key="k", base_url=url, max_retries=0, timeout=openai.Timeout(SOON, connect=PATIENT)
    ) as client:
        return client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}]
        )


def with_anthropic(url: str) -> object:
    with anthropic.Anthropic(
        api_key="k", base_url=url, max_retries=0, timeout=anthropic.Timeout(SOON, connect=PATIENT)
    ) as client:
        return client.messages.create(
            model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}]
        )


def with_genai(url: str) -> object:
    # One number for everything, in milliseconds.
    options = genai.types.HttpOptions(base_url=url, timeout=900)
    client = genai.Client(api_key="k", http_options=options)
    try:
        return client.models.generate_content(model="m", contents="x")
    finally:
        client.close()


def with_botocore(url: str) -> object:
    config = botocore.config.Config(
        retries={"total_max_attempts": 1}, read_timeout=SOON, connect_timeout=PATIENT
    )
    session = botocore.session.get_session()
    session.set_credentials("AKIDEXAMPLE", "x")
    client = session.create_client(
        "dynamodb", region_name="eu-west-1", endpoint_url=url, config=config
    )
    try:
        return client.list_tables()
    finally:
        client.close()


HTTP = {
    "httpx": with_httpx(httpx),
    "httpx2": with_httpx(httpx2),
    "httpx2 async": with_async_httpx2,
    "requests": with_requests,
    "aiohttp": with_aiohttp,
}
SDKS = {
    "openai": with_openai,
    "anthropic": with_anthropic,
    "google-genai": with_genai,
    "botocore": with_botocore,
}
ALL = {**HTTP, **SDKS, "urllib3": with_urllib3}


def each(clients: dict[str, Callable[[str], object]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", clients.values(), ids=clients.keys())


@each(ALL)
def test_a_refused_connection_was_never_sent(client, nobody):
    failure = failure_of(lambda: client(nobody))
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.NEVER_SENT)


@each(ALL)
@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_lost_reply_may_have_been_applied(client, how, server):
    server.how = how
    failure = failure_of(lambda: client(server.url))
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.MAYBE_APPLIED)


@each(ALL)
def test_a_silent_server_may_have_applied_it(client, server):
    server.how = "hang"
    failure = failure_of(lambda: client(server.url))
    assert (failure.kind, failure.reach) == (Kind.TIMEOUT, Reach.MAYBE_APPLIED)


@each(HTTP)
def test_a_body_cut_short_is_a_lost_reply(client, server):
    server.answer(200, b"half")
    server.how = "short"
    failure = failure_of(lambda: client(server.url))
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.MAYBE_APPLIED)


@each({**HTTP, **SDKS})
@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Kind.AUTH), (404, Kind.CLIENT), (500, Kind.SERVER), (503, Kind.SERVER)],
)
def test_a_status_is_found_in_every_clients_error(client, status, kind, server):
    server.answer(status, b"{}")
    failure = failure_of(lambda: client(server.url))
    assert (failure.kind, failure.status) == (kind, status)


def test_a_page_where_json_was_expected_is_judged_by_its_status_first(server):
    async def json_of(status: int) -> None:
        server.answer(status, b"<html>", content_type="text/html")
        async with aiohttp.ClientSession() as session, session.get(server.url) as answer:
            await answer.json()

    assert failure_of(lambda: asyncio.run(json_of(503))).kind is Kind.SERVER
    failure = failure_of(lambda: asyncio.run(json_of(200)))
    assert (failure.kind, failure.reach) == (Kind.BAD_ANSWER, Reach.MAYBE_APPLIED)


@each({**HTTP, **SDKS})
def test_retry_after_is_found_in_every_clients_error(client, server):
    server.answer(429, b"{}", Retry_After="7")
    failure = failure_of(lambda: client(server.url))
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 7


@each(SDKS | {"httpx2": with_httpx(httpx2), "requests": with_requests})
def test_the_vendors_body_is_found_in_every_clients_error(client, server):
    body = {"error": {"message": "no money left", "type": "insufficient_quota"}}
    if client is with_botocore:
        body = {"__type": "insufficient_quota", "message": "no money left"}  # type: ignore[dict-item]
    server.answer(429, json.dumps(body).encode())
    failure = failure_of(lambda: client(server.url))
    assert failure.kind is Kind.BILLING
    assert failure.message == "no money left"


def test_anthropics_overload_is_seen(server):
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.answer(529, json.dumps(body).encode())
    failure = failure_of(lambda: with_anthropic(server.url))
    assert (failure.kind, failure.code) == (Kind.OVERLOADED, "overloaded_error")


def test_an_error_inside_anthropics_stream_is_seen(server):  # a status of 200
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    stream = f"event: error\ndata: {json.dumps(event)}\n\n".encode()
    server.answer(200, stream, content_type="text/event-stream")

    def call() -> None:
        with anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
            for _ in client.messages.create(
                model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}], stream=True
            ):
                pass

    failure = failure_of(call)
    assert (failure.kind, failure.status) == (Kind.OVERLOADED, 200)


def test_an_error_inside_openais_stream_is_seen(server):  # no status at all
    event = {"error": {"message": "slow down", "code": "rate_limit_exceeded", "type": "tokens"}}
    server.answer(200, f"data: {json.dumps(event)}\n\n".encode(), content_type="text/event-stream")

    def call() -> None:
        with openai.OpenAI(api_key="k", base_url=server.url, max_retries=0) as client:
            for _ in client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            ):
                pass

    failure = failure_of(call)
    assert (failure.kind, failure.code) == (Kind.RATE_LIMIT, "rate_limit_exceeded")


def test_geminis_retry_info_is_found(server):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}]
    error = {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED", "details": details}
    server.answer(429, json.dumps({"error": error}).encode())
    failure = failure_of(lambda: with_genai(server.url))
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 12


@each({**HTTP, "openai": with_openai, "anthropic": with_anthropic})
def test_a_server_without_tls_is_not_called_again(client, server):  # E-G4
    failure = failure_of(lambda: client(server.url.replace("http:", "https:")))
    assert failure.reach is Reach.NEVER_SENT
    assert failure.is_retriable is False


@each({"httpx": with_httpx(httpx), "httpx2": with_httpx(httpx2), "requests": with_requests})
@pytest.mark.parametrize("url", ["gopher://x.example", "nonsense"])
def test_a_bad_address_is_the_callers_mistake(client, url):  # E-G4
    failure = failure_of(lambda: client(url))
    assert (failure.kind, failure.is_retriable) == (Kind.CLIENT, False)


@pytest.mark.parametrize("module", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_circle_of_redirects_is_not_walked_twice(module, server):  # E-G4
    server.answer(302, location=server.url)

    def call() -> None:
        with module.Client(follow_redirects=True, trust_env=False) as client:
            client.get(server.url)

    assert failure_of(call).is_retriable is False


def test_requests_and_aiohttp_also_tire_of_circles(server):
    server.answer(302, location=server.url)
    assert failure_of(lambda: with_requests(server.url)).is_retriable is False
    assert failure_of(lambda: with_aiohttp(server.url)).is_retriable is False


def test_a_full_pool_was_never_sent(server):
    server.how = "hang"

    async def call() -> None:
        limits = httpx2.Limits(max_connections=1)
        timeout = httpx2.Timeout(0.4, pool=0.05)
        async with httpx2.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as client:
            first = asyncio.ensure_future(client.get(server.url))
            await asyncio.sleep(0.1)
            try:
                await client.get(server.url)
            finally:
                first.cancel()

    failure = failure_of(lambda: asyncio.run(call()))
    assert (failure.kind, failure.reach) == (Kind.TIMEOUT, Reach.NEVER_SENT)


def test_a_name_that_does_not_resolve_was_never_sent():
    failure = failure_of(lambda: with_httpx(httpx2)("http://no-such-host.invalid"))
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.NEVER_SENT)


def test_the_transport_below_is_known_too(nobody):
    with httpcore.ConnectionPool() as pool:
        failure = failure_of(lambda: pool.request("GET", nobody))
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.NEVER_SENT)


def test_urllib3s_own_retries_show_what_they_met(nobody):
    def call() -> None:
        with urllib3.PoolManager() as pool:
            pool.request("GET", nobody, retries=urllib3.Retry(total=0))

    failure = failure_of(call)
    assert (failure.kind, failure.reach) == (Kind.NETWORK, Reach.NEVER_SENT)


@each({name: get for name, get in HTTP.items() if name != "aiohttp"})
def test_an_answer_is_judged_without_an_exception(client, server):
    server.answer(200, json.dumps({"error": {"message": "x", "code": 502}}).encode())
    failure = judge_response(client(server.url), now=NOW)
    assert failure is not None
    assert failure.kind is Kind.SERVER


def test_an_answer_of_aiohttp_is_judged_without_an_exception(server):
    server.answer(429, b'{"error": {"type": "insufficient_quota"}}')

    async def judge() -> tuple[Failure | None, Failure | None]:
        async with aiohttp.ClientSession() as session, session.get(server.url) as answer:
            unread = judge_response(answer, now=NOW)
            await answer.read()
            return unread, judge_response(answer, now=NOW)

    unread, read = asyncio.run(judge())
    assert unread is not None
    assert read is not None
    assert (unread.kind, read.kind) == (Kind.RATE_LIMIT, Kind.BILLING)


def test_a_response_that_is_being_streamed_is_left_alone(server):
    server.answer(429, b'{"error": {"type": "insufficient_quota"}}', retry_after="3")
    with requests.get(server.url, stream=True, timeout=1) as answer:
        failure = judge_response(answer, now=NOW)
        assert failure is not None
        assert failure.kind is Kind.RATE_LIMIT, "the body, unread, has not been heard"
        assert json.loads(answer.content)["error"]["type"] == "insufficient_quota"


def test_urllib3_tires_of_circles_too(server):  # E-G4
    server.answer(302, location=server.url)

    def call() -> None:
        with urllib3.PoolManager() as pool:
            pool.request("GET", server.url, retries=urllib3.Retry(redirect=2))

    failure = failure_of(call)
    assert (failure.kind, failure.is_retriable) == (Kind.CLIENT, False)

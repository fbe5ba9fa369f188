"""The client middleware of aiohttp."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

import mulligan
from mulligan.adapters.aiohttp import guarded

from .conftest import QUESTION

pytestmark = pytest.mark.real


@pytest.fixture
def guard(clock) -> mulligan.Guard:
    return mulligan.Guard("api", attempts=4)


def send(
    guard: mulligan.Guard, method: str, url: str, *, keys: bool = False, **options: Any
) -> Any:
    async def main() -> Any:
        middlewares = [guarded(guard, keys=keys)]
        async with (
            aiohttp.ClientSession(middlewares=middlewares) as session,
            session.request(method, url, **options) as response,
        ):
            response.raise_for_status()
            return await response.json()

    return asyncio.run(main())


def test_refusals_lost_connections_and_cut_bodies_are_retried(fault_server, guard):
    fault_server.set("503, reset, cut(1), ok")
    url = f"{fault_server.url}/v1/messages"
    answer = send(guard.but(attempts=5), "POST", url, json=QUESTION)
    assert answer["stop_reason"] == "end_turn"
    assert fault_server.totals.requests == 4


def test_the_exception_of_the_last_response_tells_the_story(fault_server, guard):
    fault_server.set("503")
    with pytest.raises(aiohttp.ClientResponseError) as caught:
        send(guard, "GET", f"{fault_server.url}/invoices")
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == fault_server.totals.requests == 4


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_what_aiohttp_resends_by_itself_is_not_sent_again(method, fault_server, guard):
    fault_server.set("reset")
    with pytest.raises(aiohttp.ClientOSError) as caught:
        send(guard, method, f"{fault_server.url}/invoices/1", json={})
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == fault_server.totals.requests == 4


def test_a_lost_reply_to_a_write_is_repeated_with_a_key_only(fault_server, guard):
    fault_server.set("POST /invoices -> lost, ok")
    url = f"{fault_server.url}/invoices"
    with pytest.raises(aiohttp.ClientError):
        send(guard, "POST", url, json={"eur": 7})
    assert fault_server.totals.requests == 1
    fault_server.set("POST /invoices -> lost, ok")
    send(guard, "POST", url, json={"eur": 8}, keys=True)
    totals = fault_server.totals
    assert (totals.requests, totals.effects, totals.duplicates) == (3, 2, 0)


def test_a_body_that_can_be_read_once_is_refused_before_the_first_try(fault_server, guard):
    async def body() -> Any:
        yield b"{}"

    with pytest.raises(mulligan.SettingError, match=r"which works only once"):
        send(guard, "PUT", f"{fault_server.url}/invoices/1", data=body())
    assert fault_server.totals.requests == 0


def test_an_open_circuit_is_a_connection_that_failed(fault_server, clock):
    fault_server.set("503")
    breaker = mulligan.Breaker(failures=2)
    guard = mulligan.Guard("api", attempts=2, breaker=breaker, when_open="fail")
    with pytest.raises(aiohttp.ClientResponseError):
        send(guard, "GET", f"{fault_server.url}/invoices")
    with pytest.raises(aiohttp.ClientConnectionError) as caught:
        send(guard, "GET", f"{fault_server.url}/invoices")
    assert issubclass(type(caught.value), mulligan.CircuitOpen)
    assert fault_server.totals.requests == 2


def test_a_stream_of_events_is_handed_on_as_it_comes(fault_server, guard):
    fault_server.set("503, ok")

    async def main() -> bytes:
        async with (
            aiohttp.ClientSession(middlewares=[guarded(guard)]) as session,
            session.post(
                f"{fault_server.url}/v1/messages", json={**QUESTION, "stream": True}
            ) as response,
        ):
            return b"".join([chunk async for chunk in response.content.iter_any()])

    assert b"message_stop" in asyncio.run(main())

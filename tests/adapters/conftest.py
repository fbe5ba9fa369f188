"""What tests of adapters share: a virtual clock beside a real server, three worlds to send in."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import httpx2
import pytest
import trio

import mulligan
from mulligan.testing import virtual_time

QUESTION: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.fixture(scope="module", autouse=True)
def _collected():
    """Frameworks leave their clients to the collector; the next module must not hear of them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def clock():
    """Waits of guards take no time; the server's time is real."""
    with virtual_time() as virtual:
        yield virtual


class Client:
    """A guarded client of one library in one world; every method returns a response.

    Args:
        name: ``httpx``, ``httpx2``, each alone or with ``-asyncio`` or ``-trio`` behind it.
    """

    def __init__(self, name: str) -> None:
        library, _, self.world = name.partition("-")
        self.library: Any = {"httpx": httpx, "httpx2": httpx2}[library]
        self.made: Any = None

    def run(self, work: Callable[[Any], Any], guard: mulligan.Guard, **options: Any) -> Any:
        """`work` with a guarded client; a coroutine function in the async worlds."""
        wraps = options.pop("wraps", {})
        if not self.world:
            with self.library.Client(**options) as client:
                return work(guard.wrap(client, **wraps))

        async def main() -> Any:
            async with self.library.AsyncClient(**options) as client:
                found = work(guard.wrap(client, **wraps))
                return await found if isinstance(found, Awaitable) else found

        return trio.run(main) if self.world == "trio" else asyncio.run(main())

    def send(self, guard: mulligan.Guard, method: str, url: str, **options: Any) -> Any:
        """One request, its body read."""
        sending = {
            name: options.pop(name) for name in ("json", "content", "headers") if name in options
        }
        return self.run(lambda client: client.request(method, url, **sending), guard, **options)

    def stream(self, guard: mulligan.Guard, url: str, body: Any = None, **options: Any) -> Any:
        """The pieces of a streamed answer."""
        body = {**QUESTION, "stream": True} if body is None else body
        if not self.world:

            def work(client: Any) -> Any:
                with client.stream("POST", url, json=body) as response:
                    return response, b"".join(response.iter_bytes())

            return self.run(work, guard, **options)

        async def awork(client: Any) -> Any:
            async with client.stream("POST", url, json=body) as response:
                return response, b"".join([piece async for piece in response.aiter_bytes()])

        return self.run(awork, guard, **options)


WORLDS = [f"{each}{world}" for each in ("httpx", "httpx2") for world in ("", "-asyncio", "-trio")]


@pytest.fixture(params=WORLDS)
def client(request) -> Client:
    return Client(request.param)


def events(body: bytes) -> list[dict[str, Any]]:
    """The events in the body of an answer."""
    return [
        json.loads(line.removeprefix("data: "))
        for line in body.decode().splitlines()
        if line.startswith("data: {")
    ]

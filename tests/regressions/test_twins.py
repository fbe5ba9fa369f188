"""What the plain driver does, the async one does, and blocks do.

Three differences by accident. An interrupt while a key was being claimed left the key taken on the
plain side: later callers got KeyBusy until the lease was over. A block of `attempts()` that ran out
of retry tokens ended at once, so a loop around it became the storm that tokens prevent. And a plain
guard with `timeout_to` inspected the signature on every call, while an async one never did, and
failed with a TypeError of the function's.
"""

from __future__ import annotations

import inspect
from functools import partial

import pytest

import mulligan
from mulligan.stores.memory import Memory
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time


class Stop(BaseException):
    """An interrupt or a cancellation."""


class Interrupted:
    """Claims of a store whose answer to the first one never arrives: the caller is interrupted."""

    def __init__(self, store: Memory) -> None:
        self._keys, self.answers = store.keys, 0

    def transact(self, key, operation):
        answer = self._keys.transact(key, operation)
        self.answers += 1
        if self.answers == 1:
            raise Stop
        return answer

    async def atransact(self, key, operation):
        return self.transact(key, operation)

    def __getattr__(self, name):
        return getattr(self._keys, name)


@pytest.mark.real
def test_an_interrupt_while_a_key_is_claimed_gives_it_back(drive):
    store = Memory()
    store.keys = Interrupted(store)  # type: ignore[assignment]
    guard = mulligan.Guard("bank", store=store, in_place=1, effects="keyed")

    def once(function):
        if drive.name == "sync":
            return guard.once("order-7", function)

        async def work():
            return function()

        async def main():
            return await guard.aonce("order-7", work)

        import asyncio

        import trio

        return asyncio.run(main()) if drive.name == "asyncio" else trio.run(main)

    script = Scripted("paid")
    with pytest.raises(Stop):
        once(script)
    assert script.calls == []
    assert once(script) == "paid"


# Out of tokens


def block(drive, **options):
    """A block that fails until its guard gives up."""
    guard = mulligan.Guard("api", effects="read", breaker=False, gate=False, **options)

    def work():
        for attempt in guard.attempts():
            with attempt:
                raise status_error(500)

    async def awork():
        async for attempt in guard.attempts():
            with attempt:
                raise status_error(500)

    return work() if drive.name == "sync" else drive.arun(awork)


def function(drive, **options):
    drive.run(
        Scripted(status_error(500)),
        target="api",
        effects="read",
        breaker=False,
        gate=False,
        **options,
    )


@pytest.mark.parametrize("how", [block, function])
def test_whoever_is_out_of_tokens_waits_before_the_end(drive, how):
    tokens = mulligan.Tokens(capacity=1, floor=0)
    with virtual_time(drive.clock), pytest.raises(Exception, match="status 500") as caught:
        how(drive, tokens=tokens, when_open="fail")
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "tokens"
    assert (story.attempts, drive.clock.sleeps) == (1, [0.25])


# timeout_to


class Client:
    def ask(self, question, *, seconds=0.0):
        return f"{question} {seconds:g}"

    async def aask(self, question, *, seconds=0.0):
        return f"{question} {seconds:g}"


@pytest.fixture
def looks(monkeypatch):
    """How often a signature was inspected."""
    seen = []
    real = inspect.signature

    def signature(function, **options):
        seen.append(function)
        return real(function, **options)

    monkeypatch.setattr(inspect, "signature", signature)
    return seen


def test_a_signature_is_looked_at_once(drive, looks):
    client, options = Client(), {"timeout": 5, "timeout_to": "seconds", "effects": "read"}
    guard = mulligan.Guard("api", clock=drive.clock, **options)  # type: ignore[arg-type]
    for _ in range(3):
        if drive.name == "sync":
            assert guard.call(client.ask, "why?") == "why? 5"
            assert guard.call(partial(client.ask, "why?")) == "why? 5"
        else:

            async def main():
                assert await guard.acall(client.aask, "why?") == "why? 5"

            drive.arun(main)
    assert len(looks) == 1


def test_a_parameter_that_is_not_taken_is_refused_alike(drive):
    guard = mulligan.Guard("api", timeout=5, timeout_to="limit", clock=VirtualClock())
    words = r"timeout_to names 'limit', which a?ask\(\) does not take; it takes self, question"
    client = Client()

    def call():
        guard.call(client.ask, "why?")

    async def acall():
        await guard.acall(client.aask, "why?")

    with pytest.raises(mulligan.SettingError, match=words):
        call() if drive.name == "sync" else drive.arun(acall)
    with pytest.raises(mulligan.SettingError, match=words):
        guard.retry(Client.ask if drive.name == "sync" else Client.aask)

"""The calls that `overhead` measures, one contender a line.

Everybody is configured to do as nearly the same as they can, and what they are asked to do
stands here. A peer that is not installed is left out.
"""

from __future__ import annotations

import asyncio
from itertools import repeat
from typing import TYPE_CHECKING, Any

from _measure import peer

import mulligan
from mulligan.calls.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Run = Callable[[int], None]

__all__ = (
    "BARE",
    "beside_trio",
    "calm_async",
    "calm_sync",
    "listened",
    "retried_async",
    "retried_sync",
    "suspending",
)

BARE = "bare function"
DEADLINE = 30.0


def work(value: int) -> int:
    return value


async def awork(value: int) -> int:
    return value


async def yielding(value: int) -> int:
    await asyncio.sleep(0)
    return value


class Answer:
    """An answer as an SDK gives it, with the headers of a response far from its limits."""

    def __init__(self) -> None:
        self.headers = {
            "content-type": "application/json",
            "date": "Mon, 16 Nov 2026 00:00:00 GMT",
            "server": "bench",
            "x-ratelimit-limit-requests": "10000000",
            "x-ratelimit-limit-tokens": "900000000",
            "x-ratelimit-remaining-requests": "9999999",
            "x-ratelimit-remaining-tokens": "899999000",
            "x-ratelimit-reset-requests": "12ms",
            "x-ratelimit-reset-tokens": "6ms",
            "x-request-id": "req_1",
        }


ANSWER = Answer()


def ask(value: int) -> Answer:  # noqa: ARG001 -- called as `work` is
    return ANSWER


async def aask(value: int) -> Answer:  # noqa: ARG001 -- called as `awork` is
    return ANSWER


def _guards(function: Any, asking: Any) -> dict[str, Any]:
    """Guards with everything on, with the breaker alone, with an observer."""
    alone = mulligan.Guard("bench, breaker alone", gate=False, tokens=False)
    reading = mulligan.Guard("bench, observed", observe=lambda answer: answer.headers)
    return {
        "mulligan Guard": mulligan.Guard("bench").retry(function),
        "mulligan Guard, breaker alone": alone.retry(function),
        "mulligan Guard(observe=…)": reading.retry(asking),
    }


def calm_sync() -> dict[str, Run]:
    """A plain function that succeeds at once."""
    functions: dict[str, Any] = {
        BARE: work,
        "mulligan.retry": mulligan.retry(work),
        "mulligan.retry(listeners=…)": mulligan.retry(listeners=[mulligan.Counters()])(work),
        "mulligan.retry(deadline=30)": mulligan.retry(deadline=DEADLINE)(work),
        "mulligan.retry(context=True)": mulligan.retry(context=True)(work),
        **_guards(work, ask),
        **_peers(work),
    }
    runs = {name: _spin(function) for name, function in functions.items()}
    call = mulligan.Guard("bench").call

    def through_guard(count: int) -> None:
        for _ in repeat(None, count):
            call(work, 1)

    return {**runs, "mulligan Guard.call": through_guard}


def calm_async(loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """A coroutine function that succeeds at once, without suspending."""
    functions: dict[str, Any] = {
        BARE: awork,
        "mulligan.retry": mulligan.retry(awork),
        "mulligan.retry(deadline=30)": mulligan.retry(deadline=DEADLINE)(awork),
        "mulligan.retry(context=True)": mulligan.retry(context=True)(awork),
        **_guards(awork, aask),
        **_peers(awork),
        **_bounded_peers(awork),
    }
    runs = {name: _aspin(loop, function) for name, function in functions.items()}
    acall = mulligan.Guard("bench").acall

    async def through_guard(count: int) -> None:
        for _ in repeat(None, count):
            await acall(awork, 1)

    return {**runs, "mulligan Guard.acall": lambda n: loop.run_until_complete(through_guard(n))}


def suspending(loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """A coroutine function that gives way to the loop once: here a deadline needs its timer."""
    functions: dict[str, Any] = {
        BARE: yielding,
        "mulligan.retry(deadline=30)": mulligan.retry(deadline=DEADLINE)(yielding),
        **_bounded_peers(yielding),
    }
    return {name: _aspin(loop, function) for name, function in functions.items()}


def beside_trio(loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """The calm coroutine function again, once somebody has imported trio into the process."""
    if not peer("trio"):
        return {BARE: _aspin(loop, awork)}
    runs = calm_async(loop)
    names = (BARE, "mulligan.retry(deadline=30)", "nopanic.retry", "nopanic timeout + retry")
    return {name: runs[name] for name in names if name in runs}


def _peers(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if nopanic := peer("nopanic"):
        found["nopanic.retry"] = nopanic.retry()(function)
        found["nopanic.retry(max_time=30)"] = nopanic.retry(max_time=DEADLINE)(function)
    if tenacity := peer("tenacity"):
        found["tenacity.retry"] = tenacity.retry(stop=tenacity.stop_after_attempt(3))(function)
    if stamina := peer("stamina"):
        found["stamina.retry"] = stamina.retry(on=ConnectionError)(function)
    if backoff := peer("backoff"):
        found["backoff.on_exception"] = backoff.on_exception(
            backoff.expo, ConnectionError, max_tries=3
        )(function)
    if redress := peer("redress"):
        found["redress.retry"] = redress.retry(function)
    if circuitbreaker := peer("circuitbreaker"):
        found["circuitbreaker.circuit"] = circuitbreaker.circuit(function)
    return found


def _bounded_peers(function: Any) -> dict[str, Any]:
    """Nopanic's cheapest stack that ends the whole call in time and cuts a running attempt."""
    nopanic = peer("nopanic")
    if not nopanic:
        return {}
    stack = nopanic.compose(nopanic.timeout(DEADLINE), nopanic.retry())
    return {"nopanic timeout + retry": stack(function)}


# A retry: the first call answers 503 without headers, the second one succeeds


class Unavailable(Exception):
    """An answer with status 503, in the attribute that both sides read."""

    def __init__(self, words: str = "service unavailable") -> None:
        super().__init__(words)
        self.status = 503


class Instant(SystemClock):
    """The machine's clocks, with sleeps that are over at once."""

    def sleep(self, delay: float) -> None: ...

    async def asleep(self, delay: float) -> None: ...


def _at_once(_: float) -> None: ...


async def _aat_once(_: float) -> None: ...


def _flaky() -> Callable[[int], int]:
    calls = 0

    def flaky(value: int) -> int:
        nonlocal calls
        calls += 1
        if calls & 1:
            raise Unavailable
        return value

    return flaky


def _talkative() -> Callable[[int], int]:
    calls = 0

    def flaky(value: int) -> int:
        nonlocal calls
        calls += 1
        if calls & 1:
            raise Unavailable(f"service unavailable, incident {calls}")
        return value

    return flaky


def _aflaky() -> Callable[[int], Awaitable[int]]:
    calls = 0

    async def flaky(value: int) -> int:
        nonlocal calls
        calls += 1
        if calls & 1:
            raise Unavailable
        return value

    return flaky


def retried_sync(*, has_fresh_words: bool = False) -> dict[str, Run]:
    """Everybody's own defaults, with sleeps that are over at once."""
    make = _talkative if has_fresh_words else _flaky
    flaky = make()

    def by_hand(value: int) -> int:
        try:
            return flaky(value)
        except Unavailable:
            return flaky(value)

    functions: dict[str, Any] = {
        BARE: by_hand,
        "mulligan.retry": mulligan.retry(effects="read", clock=Instant())(make()),
        **_retrying_peers(make, _at_once),
    }
    return {name: _spin(function) for name, function in functions.items()}


def retried_async(loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """The same, awaited."""
    flaky = _aflaky()

    async def by_hand(value: int) -> int:
        try:
            return await flaky(value)
        except Unavailable:
            return await flaky(value)

    functions: dict[str, Any] = {
        BARE: by_hand,
        "mulligan.retry": mulligan.retry(effects="read", clock=Instant())(_aflaky()),
        **_retrying_peers(_aflaky, _aat_once),
    }
    return {name: _aspin(loop, function) for name, function in functions.items()}


def listened() -> dict[str, Run]:
    """A retry without a listener, and with each of ours; queues are drained between rounds."""
    import logging
    import os

    quiet = logging.getLogger("bench.listened")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    quiet.setLevel(logging.INFO)
    flaky = _flaky()

    def by_hand(value: int) -> int:
        try:
            return flaky(value)
        except Unavailable:
            return flaky(value)

    listeners: dict[str, Any] = {
        "a function": lambda _event: None,
        "Counters": mulligan.Counters(),
        "LogListener": mulligan.LogListener(logger=quiet),
        "LogListener, sampled": mulligan.LogListener("sampled", logger=quiet),
        "JsonLinesListener": mulligan.JsonLinesListener(os.devnull),
        "StoreListener": mulligan.StoreListener("memory:"),
        "BackgroundListener": mulligan.BackgroundListener(lambda _event: None),
    }
    if peer("prometheus_client"):
        from prometheus_client import CollectorRegistry

        listeners["PrometheusListener"] = mulligan.PrometheusListener(CollectorRegistry())
    if sdk := peer("opentelemetry.sdk.trace"):
        listeners["OpenTelemetryListener"] = mulligan.OpenTelemetryListener(sdk.TracerProvider())
    # A full queue is cheaper than one that is emptied: what is measured is a bad minute.
    logging.getLogger("mulligan").setLevel(logging.CRITICAL)
    functions: dict[str, Any] = {
        BARE: by_hand,
        "mulligan.retry": mulligan.retry(effects="read", clock=Instant())(_flaky()),
    }
    for name, listener in listeners.items():
        made = mulligan.retry(effects="read", clock=Instant(), listeners=[listener])
        functions[name] = made(_flaky())
    return {name: _spin(function) for name, function in functions.items()}


def _retrying_peers(make: Callable[[], Any], sleep: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if redress := peer("redress"):
        found["redress.retry"] = redress.retry(
            classifier=redress.default_classifier, sleeper=sleep
        )(make())
    if tenacity := peer("tenacity"):
        found["tenacity.retry, no classifier"] = tenacity.retry(
            stop=tenacity.stop_after_attempt(5),
            wait=tenacity.wait_random_exponential(0.5, 30),
            sleep=sleep,
        )(make())
    return found


def _spin(function: Callable[[int], object]) -> Run:
    def run(count: int) -> None:
        for _ in repeat(None, count):
            function(1)

    return run


def _aspin(loop: asyncio.AbstractEventLoop, function: Callable[[int], Awaitable[object]]) -> Run:
    async def spin(count: int) -> None:
        for _ in repeat(None, count):
            await function(1)

    return lambda count: loop.run_until_complete(spin(count))

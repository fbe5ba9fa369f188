"""Other libraries as a simulation runs them, each through its real package.

Every adapter configures its library as the library's own documentation recommends it for calls to
an API that can fail, and hands it everything that it knows how to use: the error's status, its
Retry-After where there is a place for it, the time that a job has. `patient` tells it not to give
up: as many attempts and as much time as there is, and nothing else changed.

All of them wait with `asyncio.sleep`, which is virtual in a simulation. What they read off the
machine's clocks and random generator is virtual inside `virtual`.

Writes: where the user writes the predicate, a request whose reply was lost is not sent again, as a
careful user without a way to verify would have it. Where the library decides, it decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import backoff
import botocore.retries.standard
import google.api_core.exceptions
import google.api_core.retry
import httpx
import httpx2
import httpx_retries
import nopanic
import openai
import redress
import redress.strategies
import requests.exceptions
import stamina
import tenacity
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from mulligan.sim.engine import Clients, PolicyContext, StatusError, StreamCut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from mulligan.sim.server import SimulatedJob

    Send = Callable[[], Awaitable[Any]]

__all__ = ("PEERS", "Peer", "virtual")

# More than any scenario lasts, in attempts and in seconds.
_MANY, _LONG = 1_000_000, 1_000_000.0

# What people list as worth another try; 529 is Anthropic's "overloaded".
_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Peer:
    """One library in one configuration.

    Args:
        name: What the table calls it.
        package: The distribution, for its version.
        make: Settings and patience → the calls of one process.
        is_patient: Whether it was told not to give up.
    """

    name: str
    package: str
    make: Callable[[PolicyContext, bool], Clients]
    is_patient: bool = False

    def clients(self, settings: PolicyContext) -> Clients:
        if settings.process == 0:
            random.seed(settings.dice.random())  # the libraries share Python's own generator
        return self.make(settings, self.is_patient)


@contextlib.contextmanager
def virtual() -> Iterator[None]:
    """Let clocks that libraries read show the loop's time."""
    real, dates = time.monotonic, backoff._async.datetime  # type: ignore[attr-defined]  # noqa: SLF001 -- no other way in

    def monotonic() -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return real()

    class Dates:
        """`datetime` as backoff uses it: now() and differences."""

        class datetime:  # noqa: N801 -- the standard library's name
            @staticmethod
            def now() -> dt.datetime:
                start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
                return start + dt.timedelta(seconds=monotonic())

    quiet = [logging.getLogger(name) for name in ("backoff", "openai", "stamina", "httpx_retries")]
    levels = [log.level for log in quiet]
    for log in quiet:
        log.setLevel(logging.CRITICAL + 1)
    time.monotonic, backoff._async.datetime = monotonic, Dates  # type: ignore[attr-defined, assignment]  # noqa: SLF001 -- no other way in
    stamina.instrumentation.set_on_retry_hooks([])
    try:
        yield
    finally:
        time.monotonic, backoff._async.datetime = real, dates  # type: ignore[attr-defined]  # noqa: SLF001 -- no other way in
        for log, level in zip(quiet, levels, strict=True):
            log.setLevel(level)


def _may_pass(error: BaseException, job: SimulatedJob) -> bool:
    """Whether a careful user's predicate would have this tried again."""
    if isinstance(error, StatusError):
        return error.status_code in _STATUSES
    if isinstance(error, ConnectionRefusedError):
        return True
    return isinstance(error, ConnectionError | TimeoutError) and job.effects != "unsafe"


def _retry_after(error: BaseException) -> float | None:
    """The Retry-After of an error, in seconds."""
    if isinstance(error, StatusError) and "retry-after" in error.headers:
        return float(error.headers["retry-after"])
    return None


class _Wrapped:
    """Calls through a function that a library has decorated, within the job's time."""

    def __init__(self, decorated: Callable[[Send, SimulatedJob], Awaitable[Any]]) -> None:
        self._decorated = decorated

    async def call(self, send: Send, job: SimulatedJob) -> Any:
        if not job.deadline:
            return await self._decorated(send, job)
        async with asyncio.timeout(job.deadline):
            return await self._decorated(send, job)


def _tenacity(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """OpenAI's cookbook "How to handle rate limits" (2026-11): the way most people meet it.

    ``@retry(wait=wait_random_exponential(min=1, max=60), stop=stop_after_attempt(6))``; it has no
    predicate, and tenacity's own has every exception tried again. A deadline is stop_after_delay.
    """
    deadline = settings.scenario.jobs.deadline
    stop: Any = tenacity.stop_never if is_patient else tenacity.stop_after_attempt(6)
    if deadline:
        stop = tenacity.stop_any(stop, tenacity.stop_after_delay(deadline))

    @tenacity.retry(wait=tenacity.wait_random_exponential(min=1, max=60), stop=stop, reraise=True)
    async def call(send: Send, _job: SimulatedJob) -> Any:
        return await send()

    return _Wrapped(call)


def _stamina(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """Stamina's tutorial, "Arbitrary Code Blocks" and "Backoff Hooks": ten attempts in 45 s.

    A hook says whether to retry, or for how long to wait: its documented way to Retry-After.
    """
    deadline = settings.scenario.jobs.deadline
    timeout = deadline or (None if is_patient else 45.0)

    async def call(send: Send, job: SimulatedJob) -> Any:
        def hook(error: Exception) -> bool | float:
            if not _may_pass(error, job):
                return False
            stated = _retry_after(error)
            return True if stated is None else stated

        attempts = None if is_patient else 10
        async for attempt in stamina.retry_context(on=hook, attempts=attempts, timeout=timeout):
            with attempt:
                return await send()
        raise AssertionError

    return _Wrapped(call)


def _backoff(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """Backoff's README, "Give Up Conditions": expo with full jitter, max_time=300, a giveup.

    Its way to Retry-After is the generator `runtime`, which has no wait for answers without one;
    so the exponential one, as its README has it for exceptions.
    """
    deadline = settings.scenario.jobs.deadline
    limit = deadline or (None if is_patient else 300)

    async def call(send: Send, job: SimulatedJob) -> Any:
        @backoff.on_exception(
            backoff.expo,
            Exception,
            max_time=limit,
            giveup=lambda error: not _may_pass(error, job),
            logger=None,
        )
        async def once() -> Any:
            return await send()

        return await once()

    return _Wrapped(call)


class _Hinted(Exception):
    """An exception that carries Retry-After the way nopanic looks for it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error, self.retry_after = error, _retry_after(error)


def _nopanic(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """Nopanic's README, "retry: try again, politely": five attempts, full jitter up to 30 s.

    Exceptions with a number in `retry_after` raise the wait; a patient one also lifts the cap of
    60 s on what it honours. Its breaker is left out: it would refuse jobs that can be done.
    """
    deadline = settings.scenario.jobs.deadline

    async def call(send: Send, job: SimulatedJob) -> Any:
        @nopanic.retry(
            attempts=_MANY if is_patient else 5,
            on=lambda error: isinstance(error, _Hinted) and _may_pass(error.error, job),
            backoff=nopanic.backoff.full_jitter(base=0.1, cap=30.0),
            retry_after_cap=_LONG if is_patient else 60.0,
            max_time=deadline or None,
            clock=time.monotonic,
        )
        async def once() -> Any:
            try:
                return await send()
            except Exception as error:
                raise _Hinted(error) from error

        return await once()

    return _Wrapped(call)


def _redress(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """Redress's README, "OpenAI / Anthropic SDKs": six attempts in 120 s, Retry-After honoured.

    `retry_after_or` around decorrelated jitter up to 30 s is what its contrib module makes.
    """
    deadline = settings.scenario.jobs.deadline
    klass = redress.ErrorClass

    def classify(error: BaseException) -> Any:
        if isinstance(error, StatusError):
            kind = klass.RATE_LIMIT if error.status_code == 429 else klass.SERVER_ERROR
            return redress.Classification(kind, _retry_after(error))
        is_unsafe = settings.scenario.jobs.effects == "unsafe"
        if is_unsafe and not isinstance(error, ConnectionRefusedError):
            return redress.Classification(klass.PERMANENT)
        return redress.Classification(klass.TRANSIENT)

    policy = redress.AsyncPolicy(
        retry=redress.AsyncRetry(
            classifier=classify,
            strategy=redress.strategies.retry_after_or(
                redress.strategies.decorrelated_jitter(max_s=30.0)
            ),
            max_attempts=_MANY if is_patient else 6,
            deadline_s=deadline or (_LONG if is_patient else 120.0),
        )
    )

    async def call(send: Send, _job: SimulatedJob) -> Any:
        return await policy.call(send)

    return _Wrapped(call)


def _google(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """google-api-core's reference of `AsyncRetry`: the defaults, 1 s doubling to 60 s, 120 s long.

    Errors arrive as its transports raise them; `if_transient_error` is its own predicate, and
    knows no timeout. It reads no Retry-After.
    """
    deadline = settings.scenario.jobs.deadline
    timeout = deadline or (None if is_patient else 120.0)

    async def translated(send: Send) -> Any:
        try:
            return await send()
        except StatusError as error:
            status = 503 if error.status_code == 529 else error.status_code
            raise google.api_core.exceptions.from_http_status(status, str(error)) from error
        except ConnectionError as error:
            if isinstance(error, StreamCut):
                raise requests.exceptions.ChunkedEncodingError(str(error)) from error
            raise requests.exceptions.ConnectionError(str(error)) from error

    retried = google.api_core.retry.AsyncRetry(timeout=timeout)(translated)

    async def call(send: Send, _job: SimulatedJob) -> Any:
        return await retried(send)

    return _Wrapped(call)


class _Transport(httpx.AsyncBaseTransport):
    """The way from httpx to the simulated server."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            answer = await request.extensions["send"]()
        except StatusError as error:
            return httpx.Response(error.status_code, headers=error.headers)
        except ConnectionRefusedError as error:
            raise httpx.ConnectError(str(error)) from error
        except StreamCut as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except ConnectionError as error:
            raise httpx.ReadError(str(error)) from error
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from error
        return httpx.Response(200, headers=answer.headers)


def _httpx_retries(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: FBT001 -- one flag of all adapters
    """httpx-retries' README: ``RetryTransport(retry=Retry(total=5, backoff_factor=0.5))``.

    Reads are GET, writes are POST, which it does not repeat unless told to. 500 and 529 are added
    to its statuses, as its documentation shows for what an API answers beyond them.
    """
    total_timeout = settings.scenario.jobs.deadline or None
    retry = httpx_retries.Retry(
        total=_MANY if is_patient else 5,
        backoff_factor=0.5,
        status_forcelist=_STATUSES,
        total_timeout=total_timeout,
        max_backoff_wait=_LONG if is_patient else 120.0,
    )
    if is_patient:  # 2 ** attempts overflows at the thousandth; its own cap would come after that
        retry = _Capped(**{name: getattr(retry, name) for name in _FIELDS})
    transport = httpx_retries.RetryTransport(transport=_Transport(), retry=retry)

    async def call(send: Send, job: SimulatedJob) -> Any:
        method = "POST" if job.effects == "unsafe" else "GET"
        request = httpx.Request(method, "http://simulated/", extensions={"send": send})
        response = await transport.handle_async_request(request)
        if response.is_error:
            raise StatusError(response.status_code, dict(response.headers), {})
        return response

    return _Wrapped(call)


_FIELDS = ("total", "backoff_factor", "status_forcelist", "total_timeout", "max_backoff_wait")


class _Capped(httpx_retries.Retry):  # type: ignore[misc]
    """Waits of its own choosing stay within the 120 s of its default."""

    def backoff_strategy(self) -> float:
        if self.attempts_made > 9:
            return random.uniform(0, 120.0)
        return float(super().backoff_strategy())


class _Transport2(httpx2.AsyncBaseTransport):
    """The way from the OpenAI SDK, which speaks httpx2, to the simulated server."""

    def __init__(self) -> None:
        self.sends: dict[str, Send] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            answer = await self.sends[request.headers["x-job"]]()
        except StatusError as error:
            return httpx2.Response(
                error.status_code, headers=error.headers, json=error.body, request=request
            )
        except ConnectionRefusedError as error:
            raise httpx2.ConnectError(str(error)) from error
        except StreamCut as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        except ConnectionError as error:
            raise httpx2.ReadError(str(error)) from error
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error)) from error
        return httpx2.Response(200, headers=answer.headers, json={}, request=request)


def _openai(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: ARG001, FBT001 -- the shape of an adapter
    """The OpenAI SDK itself, ``AsyncOpenAI(max_retries=2)`` as it comes, README "Retries".

    Its transport leads into the simulation; what it retries and when is its own.
    """
    transport = _Transport2()
    client = openai.AsyncOpenAI(
        api_key="none",
        base_url="http://simulated/v1",
        http_client=httpx2.AsyncClient(transport=transport),
        max_retries=_MANY if is_patient else 2,
    )

    async def call(send: Send, job: SimulatedJob) -> Any:
        name = str(job.number)
        transport.sends[name] = send
        options: Any = {"headers": {"x-job": name}}
        return await client.post("/responses", cast_to=object, body={}, options=options)

    return _Wrapped(call)


class _Events:
    """What botocore's client gives its retry handler to register with."""

    def __init__(self) -> None:
        self.meta = self.service_model = self.service_id = self.events = self
        self.handlers: dict[str, Any] = {}

    @staticmethod
    def hyphenize() -> str:
        return "simulated"

    def register(self, event: str, handler: Any, unique_id: str = "") -> None:  # noqa: ARG002 -- botocore's signature
        self.handlers[event] = handler


@dataclass(frozen=True, slots=True)
class _AwsResponse:
    status_code: int
    headers: dict[str, str]


def _botocore(settings: PolicyContext, is_patient: bool) -> Clients:  # noqa: ARG001, FBT001 -- the shape of an adapter
    """Botocore's retries guide: mode ``standard``, three attempts, a retry quota of 500 a client.

    `register_retry_handler` wires its own handler, quota and backoff, as `botocore.client` does;
    the loop around them is `botocore.endpoint`'s: ask, sleep, send again. Limits say
    ThrottlingException, as AWS does. Patience is max_attempts; the quota cannot be lifted.
    """
    events = _Events()
    botocore.retries.standard.register_retry_handler(events, _MANY if is_patient else None)
    needs_retry = events.handlers["needs-retry.simulated"]
    after_call = events.handlers["after-call.simulated"]

    async def call(send: Send, _job: SimulatedJob) -> Any:
        context: dict[str, Any] = {"retries": {}}
        attempts = 0
        while True:
            attempts += 1
            raised: Exception
            response, caught = None, None
            try:
                answer = await send()
            except StatusError as error:
                raised = error
                code = {429: "ThrottlingException"}.get(error.status_code, "InternalFailure")
                status = 503 if error.status_code == 529 else error.status_code
                parsed = {"Error": {"Code": code}}
                response = (_AwsResponse(status, error.headers), parsed)
            except TimeoutError as error:
                raised, caught = error, ReadTimeoutError(endpoint_url="http://simulated")
            except ConnectionError as error:
                raised, caught = error, ConnectionClosedError(endpoint_url="http://simulated")
            else:
                after_call(context=context, http_response=_AwsResponse(200, {}))
                return answer
            delay = needs_retry(
                response=response,
                attempts=attempts,
                operation=None,
                caught_exception=caught,
                request_dict={"context": context},
            )
            if delay is None:
                raise raised
            await asyncio.sleep(delay)

    return _Wrapped(call)


_ADAPTERS = {
    "stamina": ("stamina", _stamina),
    "OpenAI SDK": ("openai", _openai),
    "backoff": ("backoff", _backoff),
    "tenacity": ("tenacity", _tenacity),
    "nopanic": ("nopanic", _nopanic),
    "redress": ("redress", _redress),
    "httpx-retries": ("httpx-retries", _httpx_retries),
    "google-api-core": ("google-api-core", _google),
    "botocore": ("botocore", _botocore),
}

PEERS = tuple(
    Peer(f"{name}, patient" if is_patient else name, package, make, is_patient)
    for is_patient in (False, True)
    for name, (package, make) in _ADAPTERS.items()
)

"""The simulated server: what it answers to a request that arrives at a given time.

It reads no clock and never waits. A reply says how long the server takes, and what the client sees
then; the engine lets that time pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Literal

from .limiters import BucketLimiter, Concurrency, LimiterAnswer, SlidingLog, Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from .limiters import Limiter
    from .randomness import SeededRandom
    from .scenario import FaultPeriod, Scenario, ServerLimit, ServerQueue

__all__ = (
    "Draw",
    "Server",
    "ServerReply",
    "SimulatedJob",
    "limiter_of",
    "served_at",
)

# The Retry-After of a server that states a wrong time, in seconds.
_AN_HOUR = 3600.0

Ending = Literal["answered", "status", "refused", "lost", "timeout", "cut"]


class Draw(IntEnum):
    """What a random number is drawn for."""

    UP = 1
    DOWN = 2
    SERVICE = 3
    FAULT = 4
    LOST = 5
    COMMITTED = 6
    CUT = 7
    DRIFT = 8
    START = 9


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """One job: what an agent asks the server for, with as many requests as it takes."""

    number: int  # from 0
    model: str = ""
    tokens: float = 1000.0
    effects: Literal["read", "idempotent", "keyed", "unsafe"] = "read"
    deadline: float = 0.0  # seconds; 0 for none


@dataclass(slots=True)
class ServerReply:
    """What became of one request."""

    # What the client sees: an answer, an error status, a refused connection, a connection that
    # breaks before the answer or in the middle of it, or its own timeout.
    ending: Ending
    takes: float = 0.0  # seconds until the reply leaves the server, or the client stops waiting
    status: int = 0  # 0 where there is none
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    is_applied: bool = False  # whether the work was done
    tokens: float = 0.0  # tokens that are billed
    # Seconds for which the server has truthfully said that it takes no request.
    closed_for: float | None = None


def limiter_of(limit: ServerLimit) -> Limiter:
    """The limiter that `limit` describes, unused."""
    match limit.kind:
        case "bucket":
            return BucketLimiter(limit.quota / limit.per, limit.quota, limit.fee)
        case "window":
            return Window(limit.quota, limit.per, limit.per if limit.first is None else limit.first)
        case "sliding":
            return SlidingLog(limit.quota, limit.per)
        case "concurrency":
            return Concurrency(limit.quota)


def served_at(queue: ServerQueue, begun: float, work: float = 1.0) -> float:
    """When `queue`, free at `begun`, has served `work` requests."""
    now = begun
    for until, rate in (
        (queue.slow_from, queue.rate),
        (queue.slow_until, queue.slow_rate),
        (inf, queue.rate),
    ):
        if now >= until:
            continue
        done = (until - now) * rate
        if done >= work:
            return now + work / rate
        work -= done
        now = until
    return now


class Server:
    """One simulated server; `wall` is the epoch second at which its time 0 is."""

    def __init__(self, scenario: Scenario, random: SeededRandom, wall: float = 0.0) -> None:
        self._scenario, self._random, self._wall = scenario, random, wall
        self._limits = [(limit, limiter_of(limit)) for limit in scenario.limits]
        self._free_at = 0.0  # when the queue is empty

    def arrive(self, now: float, job: SimulatedJob, attempt: int) -> ServerReply:
        """Answer the request number `attempt` (from 0) of a job; `now` never goes back."""
        for fault in self._scenario.faults:
            if fault.is_on(now) and self._is_hit(fault, job.number, attempt):
                return self._failed(fault, now)
        takes = self._service(job.number, attempt)
        refused = self._refused(now, job, attempt, takes)
        if refused is not None:
            return refused
        if self._scenario.queue is not None:
            self._free_at = served_at(self._scenario.queue, max(now, self._free_at))
            takes = self._free_at - now
            timeout = self._scenario.jobs.timeout
            if timeout and takes > timeout:
                return ServerReply("timeout", timeout, is_applied=True)
        return self._admitted(now, job, attempt, takes)

    def _is_hit(self, fault: FaultPeriod, job: int, attempt: int) -> bool:
        return fault.share >= 1 or self._random.roll(Draw.FAULT, job, attempt) < fault.share

    def _failed(self, fault: FaultPeriod, now: float) -> ServerReply:
        if not fault.status:
            return ServerReply("refused")
        reply = ServerReply("status", status=fault.status, body=_error_body(fault.status))
        if fault.retry_after and fault.end:
            reply.closed_for = fault.end - now
            reply.headers["retry-after"] = str(ceil(fault.end - now))
        return reply

    def _service(self, job: int, attempt: int) -> float:
        latency = self._scenario.latency
        subjects = (Draw.SERVICE, job, attempt)
        match latency.shape:
            case "fixed":
                return latency.service
            case "uniform":
                return self._random.around(latency.service, *subjects)
            case "lognormal":
                return self._random.lognormal(latency.service, latency.spread, *subjects)

    # Limits

    def _limits_for(self, job: SimulatedJob) -> list[tuple[ServerLimit, Limiter, float]]:
        return [
            (limit, limiter, job.tokens if limit.unit == "tokens" else 1.0)
            for limit, limiter in self._limits
            if not limit.model or limit.model == job.model
        ]

    def _refused(
        self, now: float, job: SimulatedJob, attempt: int, takes: float
    ) -> ServerReply | None:
        """The rejection, if a limit has no room; else the request is booked."""
        limits = self._limits_for(job)
        answers = [limiter.look(now, cost) for _, limiter, cost in limits]
        if all(answer.passes for answer in answers):
            for _, limiter, cost in limits:
                limiter.take(now, cost, until=now + takes)
            return None
        for _, limiter, _ in limits:
            limiter.refuse(now)
        # Seconds until there is room, after what the rejection itself has cost.
        wait = max(
            max(limiter.look(now, cost).retry_in, 0.0)
            for (_, limiter, cost), answer in zip(limits, answers, strict=True)
            if not answer.passes
        )
        reply = ServerReply("status", status=429, body=_error_body(429))
        self._state_quota(reply, limits, now)
        self._state_wait(reply, wait, job.number, attempt)
        return reply

    def _state_wait(self, reply: ServerReply, wait: float, job: int, attempt: int) -> None:
        """State the wait, or a wrong one, as the scenario has it."""
        hint = wait
        match self._scenario.hints.retry_after:
            case "none":
                return
            case "exact":
                reply.closed_for = wait
            case "short":
                hint = wait / 10
            case "huge":
                hint = _AN_HOUR
            case "drifting":
                drift = self._random.roll(Draw.DRIFT, job, attempt)
                hint = wait * 0.3 * 10**drift
        reply.headers["retry-after"] = str(max(1, ceil(hint - 1e-9)))

    def _state_quota(
        self, reply: ServerReply, limits: list[tuple[ServerLimit, Limiter, float]], now: float
    ) -> None:
        """State what is left, as the vendor would."""
        style = self._scenario.hints.headers
        if style == "none":
            return
        write = _STYLES[style]
        for limit, limiter, cost in limits:
            if limit.kind == "concurrency":
                continue  # no vendor states these
            answer = limiter.look(now, 0.0)
            reply.headers.update(write(limit, answer, self._wall + now))
            if limit.kind == "window" and answer.remaining < cost:
                reply.closed_for = max(reply.closed_for or 0.0, answer.reset_in)

    # Admitted

    def _admitted(self, now: float, job: SimulatedJob, attempt: int, takes: float) -> ServerReply:
        jobs, subjects = self._scenario.jobs, (job.number, attempt)
        reply = ServerReply("answered", takes, 200, is_applied=True, tokens=job.tokens)
        self._state_quota(reply, self._limits_for(job), now)
        if jobs.lost and self._random.roll(Draw.LOST, *subjects) < jobs.lost:
            is_applied = self._random.roll(Draw.COMMITTED, *subjects) < jobs.committed
            return ServerReply("lost", takes, is_applied=is_applied, tokens=job.tokens * is_applied)
        if jobs.cut and self._random.roll(Draw.CUT, *subjects) < jobs.cut:
            return ServerReply("cut", takes * jobs.cut_at, tokens=job.tokens * jobs.cut_at)
        return reply


def _error_body(status: int) -> dict[str, Any]:
    """The body of an error, without a reset time."""
    kind, message = {
        429: ("rate_limit_error", "Rate limit reached"),
        503: ("unavailable", "Service unavailable"),
        529: ("overloaded_error", "Overloaded"),
    }.get(status, ("api_error", "Internal server error"))
    return {"error": {"type": kind, "message": message}}


def _x_ratelimit(limit: ServerLimit, answer: LimiterAnswer, _wall: float) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{limit.unit}": str(answer.limit),
        f"x-ratelimit-remaining-{limit.unit}": str(answer.remaining),
        f"x-ratelimit-reset-{limit.unit}": f"{answer.reset_in:.3f}s",
    }


def _anthropic(limit: ServerLimit, answer: LimiterAnswer, wall: float) -> dict[str, str]:
    # Whole seconds, never too early.
    reset = datetime.fromtimestamp(ceil(wall + answer.reset_in - 1e-6), UTC)
    return {
        f"anthropic-ratelimit-{limit.unit}-limit": str(answer.limit),
        f"anthropic-ratelimit-{limit.unit}-remaining": str(answer.remaining),
        f"anthropic-ratelimit-{limit.unit}-reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _ratelimit(limit: ServerLimit, answer: LimiterAnswer, _wall: float) -> dict[str, str]:
    # draft-ietf-httpapi-ratelimit-headers-10: a structured field list, seconds as integers.
    return {
        "ratelimit-policy": f'"default";q={answer.limit};w={ceil(limit.per)}',
        "ratelimit": f'"default";r={answer.remaining};t={ceil(answer.reset_in - 1e-6)}',
    }


_STYLES: dict[str, Callable[[ServerLimit, LimiterAnswer, float], dict[str, str]]] = {
    "x-ratelimit": _x_ratelimit,
    "anthropic": _anthropic,
    "ratelimit": _ratelimit,
}

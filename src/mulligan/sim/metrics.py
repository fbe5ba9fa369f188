"""The metrics of recovery, computed from a ledger and an optimum.

| symbol | meaning | ideal |
|---|---|---|
| C | jobs done / jobs that can be done | 1 |
| TS | time / T* | 1 |
| RO | requests / R* | 1 |
| V | requests that arrived while the server had said it was closed | 0 |
| A, A1s | requests per job; the most in a second / the most offered in a second | 1 |
| L | seconds from restored capacity to 5 s with 95 % of the goodput it allows | 0 |
| DUP, LOST | effects beyond one; reported done but absent | 0 |
| TW | tokens billed / tokens needed | 1 |
| LA | requests begun with less time left than a usual answer takes | 0 |
| TR | verdicts that match what happened | 1 |
| F | Jain's index of completion times over agents | 1 |

``RQ = 100 * C * sqrt(T*/T * R*/R) * (1 - min(1, V/N))``; 0 with a duplicate, a loss or a hang.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, fields
from math import exp, inf, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .ledger import JobEnd, SimulationLedger
    from .oracle import Optimum
    from .scenario import Scenario

__all__ = ("Metrics", "geometric_mean", "measure")

# Goodput counts as restored when it holds for so many seconds at this share.
_HOLDS, _SHARE = 5.0, 0.95

# How finely the time is looked at in which capacity is back, in seconds.
_STEP = 0.25

# Lowest score in a geometric mean: a zero would make it zero.
_LEAST = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """How well one policy recovered in one run; see the module's table."""

    completion: float  # C
    seconds: float  # until the last job was done; for a queue, until it was drained
    best_seconds: float | None  # T*, where there is one
    requests: int  # that were sent
    best_requests: float  # R*
    violations: int  # V
    attempts: float  # A
    peak: float  # A1s
    lag: float | None  # L, where capacity was restored at a known time; infinity for never
    duplicates: int  # DUP
    lost: int  # LOST
    token_waste: float  # TW
    late: int  # LA
    truth: float  # TR
    fairness: float  # F
    has_hung: bool  # whether jobs waited for something that would never have come
    quality: float  # RQ

    @property
    def stretch(self) -> float | None:
        """TS."""
        return None if self.best_seconds is None else self.seconds / self.best_seconds

    @property
    def overhead(self) -> float:
        """RO."""
        return self.requests / self.best_requests

    def data(self) -> dict[str, float | int | bool | None]:
        """For JSON; infinity becomes null."""
        found: dict[str, float | int | bool | None] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, float):
                value = None if value == inf else float(f"{value:.5g}")
            found[each.name] = value
        return found


def measure(scenario: Scenario, ledger: SimulationLedger, best: Optimum) -> Metrics:
    """The metrics of one run."""
    jobs, requests = ledger.jobs, ledger.requests
    deadline = scenario.jobs.deadline
    done = [
        job
        for job in jobs
        if job.verdict == "done"
        and (not deadline or job.ended_at - job.began_at <= deadline + 1e-6)
    ]
    is_write = scenario.jobs.effects in {"unsafe", "keyed"}
    duplicates = sum(max(0, job.effects - 1) for job in jobs) if is_write else 0
    lost = sum(job.verdict == "done" and not job.effects for job in jobs)
    restored = _restored_at(scenario)
    lag = None if restored is None else _lag(scenario, sorted(j.ended_at for j in done), restored)
    seconds = max((job.ended_at for job in done), default=scenario.horizon)
    if scenario.queue is not None:
        seconds = min(_drained(scenario, jobs, scenario.queue.slow_until), scenario.horizon)
    completion = min(1.0, len(done) / best.jobs)
    violations = sum(request.is_violation for request in requests)
    needed = scenario.jobs.tokens * max(1, len(done))
    quality = 0.0
    if not (duplicates or lost or ledger.has_hung):
        quality = _quality(
            completion, seconds, best, len(requests), min(1.0, violations / len(jobs))
        )
    return Metrics(
        completion=completion,
        seconds=seconds,
        best_seconds=best.seconds,
        requests=len(requests),
        best_requests=best.requests,
        violations=violations,
        attempts=len(requests) / len(jobs),
        peak=_most_in_a_second(request.sent_at for request in requests)
        / max(1, _most_in_a_second(job.began_at for job in jobs)),
        lag=lag,
        duplicates=duplicates,
        lost=lost,
        token_waste=sum(request.tokens for request in requests) / needed,
        late=sum(request.is_late for request in requests),
        truth=_truth(ledger, is_write=is_write),
        fairness=_fairness(ledger),
        has_hung=ledger.has_hung,
        quality=quality,
    )


def _quality(
    completion: float, seconds: float, best: Optimum, requests: int, violations: float
) -> float:
    by_time = 1.0 if best.seconds is None else best.seconds / max(seconds, 1e-9)
    by_requests = best.requests / max(requests, 1)
    if completion < 1:
        # A policy that gives up is done early with few requests; do not reward that.
        by_time, by_requests = min(1.0, by_time), min(1.0, by_requests)
    share = min(1.0, (by_time * by_requests) ** 0.5)
    return float(100 * completion * share * (1 - violations))


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of scores; a score below 1 counts as 1."""
    logs = [log(max(value, _LEAST)) for value in values]
    return exp(sum(logs) / len(logs)) if logs else 0.0


def _restored_at(scenario: Scenario) -> float | None:
    if scenario.queue is not None:
        return scenario.queue.slow_until
    ends = [fault.end for fault in scenario.faults if fault.share >= 1 and fault.end]
    return max(ends) if ends else None


def _lag(scenario: Scenario, done: list[float], restored: float) -> float:
    """Seconds after `restored` from which on goodput holds for five seconds."""
    jobs, last = scenario.jobs, done[-1] if done else 0.0
    at = restored
    while at <= scenario.horizon:
        arrived = jobs.count
        if jobs.rate:
            arrived = min(arrived, int((at + _HOLDS) * jobs.rate))
        already = bisect_left(done, at)
        left = arrived - already
        if left <= 0:
            return at - restored if len(done) >= arrived else inf
        wanted = min(_capacity(scenario) * _HOLDS, left)
        if jobs.rate:
            wanted = min(jobs.rate * _HOLDS, wanted)
        if bisect_left(done, at + _HOLDS) - already >= _SHARE * wanted:
            return at - restored
        if at > last:
            return inf
        at += _STEP
    return inf


def _drained(scenario: Scenario, jobs: list[JobEnd], restored: float) -> float:
    """Seconds after `restored` from which on jobs are done as if there had been no slow time.

    A server whose queue is short again serves at full rate, but jobs may still be waiting for
    their turn elsewhere: the backlog is gone when new jobs are done within the time in which a
    client would abandon a request.
    """
    promptly = scenario.jobs.timeout or 2 * scenario.latency.median
    begun = sorted(job.began_at for job in jobs)
    prompt = sorted(
        job.began_at
        for job in jobs
        if job.verdict == "done" and job.ended_at - job.began_at <= promptly
    )
    at = restored
    while (count := bisect_left(begun, at + _HOLDS) - bisect_left(begun, at)) > 0:
        if bisect_left(prompt, at + _HOLDS) - bisect_left(prompt, at) >= _SHARE * count:
            return at - restored
        at += _STEP
    if any(job.verdict != "done" for job in jobs):
        return inf
    return max(job.ended_at for job in jobs) - restored  # no job began any more: it was the last


def _capacity(scenario: Scenario) -> float:
    """Requests a second that the server takes once it is up."""
    if scenario.queue is not None:
        return scenario.queue.rate
    rates = [
        limit.quota / limit.per
        for limit in scenario.limits
        if limit.unit == "requests" and limit.kind != "concurrency"
    ]
    return min(rates, default=inf)


def _most_in_a_second(times: Iterable[float]) -> int:
    """The most of `times` that lie within any one second."""
    ordered = sorted(each for each in times if each < inf)
    most = first = 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def _truth(ledger: SimulationLedger, *, is_write: bool) -> float:
    """The share of verdicts that match the ledger; `unknown` and `pending` claim nothing.

    A read that was served and not heard is not done; a write that was applied is.
    """
    heard = {each.job for each in ledger.requests if each.ending == "answered"}
    right = 0
    for number, job in enumerate(ledger.jobs):
        is_done = job.effects > 0 if is_write else number in heard
        right += {"done": is_done, "not done": not is_done}.get(job.verdict, True)
    return right / len(ledger.jobs)


def _fairness(ledger: SimulationLedger) -> float:
    """Jain's index of when each agent had its last job done."""
    times: dict[int, float] = {}
    for job in ledger.jobs:
        if job.verdict == "done":
            times[job.agent] = max(times.get(job.agent, 0.0), job.ended_at)
    values = list(times.values())
    squares = sum(each * each for each in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0

"""Delegation: a task for a sub-agent, with a timeout, a few attempts, and an answer in any case.

A sub-agent is a coroutine function, or an agent program that is run by ``mulligan run``. What it
raises is a result here; a cancellation passes, and reaches the sub-agent first.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from ..api.guard import Guard
from ..calls.async_time import on_trio
from ..calls.callables import ASYNC, function_kind
from ..calls.clock import world
from ..calls.notes import story
from ..classify.classifier import classifier
from ..core.duration import Duration, duration_text, seconds
from ..core.failure import Kind
from ..core.presets import preset
from ..core.record import record
from ..core.redaction import presentable
from ..core.timeouts import Timeouts
from ..errors import SettingError
from .execution import called

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.failure import Effects

__all__ = ("Delegated", "Delegations", "delegate", "delegate_all")

Status = Literal["ok", "timeout", "failed"]
OnFailure = Literal["fail_fast", "continue", "require_minimum"]

# Seconds that `mulligan run` has to end its program before it is killed.
_GRACE = 10.0


@record(kw_only=True, eq=False)
class Delegated:
    """What came of a delegated task.

    Args:
        status: ``ok``, ``timeout`` if the last attempt took too long, else ``failed``.
        result: What the sub-agent returned; the text that a program printed.
        attempts: Attempts made.
        elapsed: Seconds from the first attempt to the end.
        evidence: For each failed attempt a table with ``attempt``, ``kind``, ``message`` and
            ``took``, as JSON has it.
        because: Why it ended, in one sentence.
        error: What a coroutine raised last.
    """

    status: Status
    result: Any = None
    attempts: int = 0
    elapsed: float = 0.0
    evidence: tuple[dict[str, Any], ...] = ()
    because: str = ""
    error: Exception | None = None

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    def __str__(self) -> str:
        """One line, for people."""
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return f"{self.status} after {tries}, {duration_text(self.elapsed)}: {self.because}"


@record(kw_only=True, eq=False)
class Delegations:
    """What came of several delegated tasks.

    Args:
        results: One for each task, in their order.
        passed: Whether enough of them succeeded.
        because: Why, in one sentence.
    """

    results: tuple[Delegated, ...]
    passed: bool
    because: str


async def delegate(
    agent: Callable[[Any], Any] | Sequence[str],
    task: Any,
    *,
    timeout: Duration = 300,  # noqa: ASYNC109 -- for each attempt, and it shrinks
    attempts: int = 3,
    shrink: float = 0.8,
    effects: Effects | Literal["read", "idempotent", "keyed", "unsafe"] = "idempotent",
) -> Delegated:
    """Give `task` to a sub-agent; on asyncio and trio.

    Args:
        agent: A coroutine function of the task; or an agent program as a list of words,
            ``["claude", "-p"]``, which gets the task as its last argument and resumes its session
            where it can.
        task: What to do.
        timeout: Time for each attempt.
        attempts: Attempts in total. Repeated are timeouts and what passes by itself.
        shrink: What is left of the timeout after one: 300, 240, 192 s. A program that resumes has
            the whole timeout each time.
        effects: What happens if a coroutine is given the task twice; see `mulligan.retry`. Tools
            that act on the world are made safe by a `Toolbox` with a ``run=``, or by ``unsafe``.

    Raises:
        SettingError: An invalid argument.
    """
    limit = seconds(timeout, name="timeout")
    if isinstance(agent, list | tuple):
        return await _program(agent, str(task), limit, attempts)
    if function_kind(agent) != ASYNC:
        raise SettingError(
            f"an agent needs to be a coroutine function, which can be cut at its timeout, or a "
            f"program as a list of words; got {agent!r}"
        )
    clock = world().clock
    policy = preset("subagent").but(attempts=attempts, patience=(limit + 60) * attempts)
    guard = Guard(
        policy=policy, effects=effects, timeout=Timeouts(total=limit, shrink=shrink), context=True
    )
    began, made = clock.now(), 0

    async def attempt() -> Any:
        nonlocal made
        made += 1
        return await agent(task)  # type: ignore[operator]

    attempt.__name__ = getattr(agent, "__name__", "agent")
    try:
        result = await guard.acall(attempt)
    except Exception as error:  # noqa: BLE001 -- what came of it
        return _failed(error, made, clock.now() - began)
    return Delegated(
        status="ok",
        result=result,
        attempts=made,
        elapsed=clock.now() - began,
        because=f"attempt {made} succeeded",
    )


def _failed(error: Exception, made: int, elapsed: float) -> Delegated:
    failure, tale = classifier.classify(error, now=world().clock.wall()), story(error)
    tries = () if tale is None else tale.tries
    evidence = tuple(
        {"attempt": each.attempt, "kind": each.kind, "message": each.message, "took": each.took}
        for each in tries
    )
    return Delegated(
        status="timeout" if failure.kind is Kind.TIMEOUT else "failed",
        attempts=made,
        elapsed=elapsed,
        evidence=evidence,
        because=tale.because if tale is not None else str(failure),
        error=error,
    )


async def _program(argv: Sequence[str], task: str, limit: float, attempts: int) -> Delegated:
    """Run an agent program by ``mulligan run``, which journals, waits and resumes."""
    if not argv or not all(isinstance(each, str) for each in argv):
        raise SettingError(f"a program needs a list of words, ['claude', '-p']; got {argv!r}")
    clock = world().clock
    began = clock.now()
    # A limit that resets later than all attempts together may take is reported, not waited for.
    bounds = ["--timeout", f"{limit}s", "--attempts", str(attempts)]
    bounds += ["--horizon", f"{limit * attempts}s"]
    process = subprocess.Popen(  # noqa: ASYNC220, S603 -- starting blocks no longer than a fork
        [sys.executable, "-P", "-m", "mulligan", "run", "--json", *bounds, "--", *argv, task],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        said, complaints = await called(process.communicate, {}, is_inline=False)
    except BaseException:
        _stop(process)
        raise
    return _read(said, complaints, process.returncode, clock.now() - began)


def _stop(process: subprocess.Popen[str]) -> None:
    """End `mulligan run`, which ends its program first."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
        return
    process.kill()
    process.wait()


def _read(said: str, complaints: str, code: int, elapsed: float) -> Delegated:
    """What the events of ``mulligan run --json`` tell."""
    events: list[dict[str, Any]] = []
    for line in said.splitlines():
        with suppress(ValueError):
            events.append(json.loads(line))
    ended = [each for each in events if each.get("event") == "ended"]
    summary = next((each for each in events if each.get("event") == "summary"), {})
    last = summary.get("attempts", 0)
    text = "".join(
        each["text"]
        for each in events
        if each.get("event") == "output"
        and each.get("stream") == "stdout"
        and each.get("attempt") == last
    )
    evidence = tuple(
        {name: each.get(name) for name in ("attempt", "kind", "message", "took")}
        for each in ended
        if each.get("kind")
    )
    because = summary.get("because") or presentable(complaints[-1000:], 500)
    status: Status = "ok" if code == 0 else "failed"
    if code != 0 and summary.get("kind") == "timeout":
        status = "timeout"
    return Delegated(
        status=status,
        result=text if code == 0 else None,
        attempts=last,
        elapsed=elapsed,
        evidence=evidence,
        because=because or f"mulligan run exited with {code}",
    )


async def delegate_all(
    jobs: Sequence[tuple[Callable[[Any], Any] | Sequence[str], Any]],
    *,
    on_failure: OnFailure = "fail_fast",
    minimum: int | None = None,
    **options: Any,
) -> Delegations:
    """Give several tasks to sub-agents at once; on asyncio and trio.

    Args:
        jobs: Pairs of an agent and its task.
        on_failure: ``fail_fast``: the first failure cancels the others. ``continue``: all are run,
            and what failed is recorded. ``require_minimum``: all are run, and `minimum` of them
            have to succeed.
        minimum: For ``require_minimum``.
        **options: See `delegate`.

    Raises:
        SettingError: An invalid argument.
    """
    if on_failure not in {"fail_fast", "continue", "require_minimum"}:
        raise SettingError(
            f"on_failure needs fail_fast, continue or require_minimum; got {on_failure!r}"
        )
    if (on_failure == "require_minimum") != (minimum is not None):
        raise SettingError("minimum goes with on_failure='require_minimum', and only with it")
    if minimum is not None and not 1 <= minimum <= len(jobs):
        raise SettingError(f"minimum needs a number from 1 to {len(jobs)}; got {minimum!r}")
    clock = world().clock
    began = clock.now()
    found: list[Delegated | None] = [None] * len(jobs)

    async def one(number: int) -> bool:
        agent, task = jobs[number]
        found[number] = result = await delegate(agent, task, **options)
        return result.is_ok or on_failure != "fail_fast"

    await (_on_trio if on_trio() else _on_asyncio)(one, len(jobs))
    cancelled = Delegated(
        status="failed",
        elapsed=clock.now() - began,
        because="cancelled, because another task failed first",
    )
    results = tuple(each or cancelled for each in found)
    good = sum(each.is_ok for each in results)
    needed = {"fail_fast": len(jobs), "continue": 0}.get(on_failure, minimum or 0)
    because = f"{good} of {len(jobs)} succeeded"
    if on_failure != "continue":
        because += f", {needed} had to"
    return Delegations(results=results, passed=good >= needed, because=because)


async def _on_asyncio(one: Callable[[int], Any], count: int) -> None:
    """All of them at once; the first that returns False cancels the others."""
    import asyncio

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    try:
        for done in asyncio.as_completed(tasks):
            if not await done:
                return
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _on_trio(one: Callable[[int], Any], count: int) -> None:
    import trio

    async with trio.open_nursery() as nursery:

        async def run(number: int) -> None:
            if not await one(number):
                nursery.cancel_scope.cancel()

        for number in range(count):
            nursery.start_soon(run, number)

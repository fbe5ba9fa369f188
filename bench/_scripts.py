"""Random failures for `soak`: what a script is, how it is drawn, how it is played.

What a step means stands in `OUTCOMES`, written down here and not asked of the classifier: a
soak that believed the code it watches would find nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from math import ceil
from typing import TYPE_CHECKING, Any

import mulligan
from mulligan.testing import LoadedDice, VirtualClock, status_error, virtual_time

if TYPE_CHECKING:
    import random

__all__ = ("DRIVERS", "OUTCOMES", "Attempt", "Script", "Step", "Stop", "Trace", "draw", "play")

DRIVERS = ("sync", "asyncio", "trio")


class Stop(BaseException):
    """No Exception, as a cancellation is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ends.

    Args:
        make: The error, without headers; None for success.
        status: The HTTP status it stands for, if any.
        may_be_applied: Whether a repeat could do it twice.
        is_final: Whether no policy may repeat it.
    """

    make: Callable[[], BaseException] | None = None
    status: int | None = None
    may_be_applied: bool = False
    is_final: bool = False


OUTCOMES = {
    "ok": Outcome(),
    "refused": Outcome(make=ConnectionRefusedError),
    "no host": Outcome(make=lambda: socket.gaierror(socket.EAI_AGAIN, "try again")),
    "reset": Outcome(make=ConnectionResetError, may_be_applied=True),
    "timeout": Outcome(make=TimeoutError, may_be_applied=True),
    "bug": Outcome(make=lambda: KeyError("typo"), is_final=True),
    "stop": Outcome(make=Stop, is_final=True),
    "said no": Outcome(status=503, is_final=True),
    **{str(status): Outcome(status=status, is_final=True) for status in (400, 401, 404, 422)},
    **{str(status): Outcome(status=status, may_be_applied=True) for status in (408, 500, 502, 504)},
    **{str(status): Outcome(status=status) for status in (429, 503, 529)},
}
_REPEATABLE = [name for name, each in OUTCOMES.items() if name != "ok" and not each.is_final]
_FINAL = [name for name, each in OUTCOMES.items() if each.is_final]
_FORMS = ("retry-after", "retry-after-ms", "date", "body", "zero", "negative", "garbage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt: how it ends, what the server says about when, how long it takes."""

    outcome: str
    took: float
    form: str = ""
    hint: int = 0  # seconds, or for retry-after-ms milliseconds

    @property
    def seconds(self) -> float:
        """The time that the server named; 0 where it named none that can be used."""
        if self.form in {"", "zero", "negative", "garbage"}:
            return 0.0
        return self.hint / 1000 if self.form == "retry-after-ms" else float(self.hint)

    def error(self, wall: float) -> BaseException | None:
        outcome = OUTCOMES[self.outcome]
        if outcome.make is not None:
            return outcome.make()
        if outcome.status is None:
            return None
        headers: dict[str, str] = {}
        body = None
        match self.form:
            case "retry-after" | "retry-after-ms":
                headers[self.form] = str(self.hint)
            case "date":
                headers["Retry-After"] = formatdate(ceil(wall + self.hint), usegmt=True)
            case "body":
                body = {"error": {"message": "slow down", "retry_after": self.hint}}
            case "zero" | "negative" | "garbage":
                headers["Retry-After"] = {"zero": "0", "negative": "-5"}.get(self.form, "soon")
        if self.outcome == "said no":
            headers["x-should-retry"] = "false"
        return status_error(outcome.status, headers=headers, body=body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A call that can be played on every driver.

    Args:
        steps: The attempts; the last one repeats.
        options: For the guard.
        rolls: The dice.
        task: The budget and the deadline of a task around it, if there is one.
        suspends: Whether attempts wait in their loop, where they can be cut, or keep it busy.
        is_heard: Whether a listener hears of it.
        is_decorated: Whether the call goes through a decorated function.
    """

    steps: tuple[Step, ...]
    options: dict[str, Any]
    rolls: tuple[float, ...]
    task: tuple[float, float] | None = None
    suspends: bool = False
    is_heard: bool = False
    is_decorated: bool = False

    @property
    def drivers(self) -> tuple[str, ...]:
        """A plain function cannot be cut, so what suspends is for the other two."""
        return DRIVERS[1:] if self.suspends else DRIVERS


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What one attempt did."""

    step: Step
    began: float
    ended: float = 0.0
    wall: float = 0.0
    error: BaseException | None = None
    was_cut: bool = False


@dataclass(slots=True, kw_only=True)
class Trace:
    """What a driver made of a script."""

    policy: mulligan.Policy
    attempts: list[Attempt] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    failures: list[tuple[str, str, float | None]] = field(default_factory=list)
    answer: object = None
    error: BaseException | None = None
    ended: float = 0.0


def draw(dice: random.Random) -> Script:
    """A script that nobody thought of."""
    suspends = dice.random() < 0.3
    length = dice.choice((1, 2, 2, 3, 4, 6, 9))
    steps = [_step(dice, dice.choice(_REPEATABLE)) for _ in range(length)]
    end = dice.choice(["ok", "ok", "ok", dice.choice(_FINAL), dice.choice(_REPEATABLE)])
    steps.append(_step(dice, end))
    options: dict[str, Any] = {
        "policy": dice.choice(
            ("default", "default", "skill", "tools", "pattern", "surface", "pipeline")
        )
    }
    if dice.random() < 0.7:
        options["effects"] = dice.choice(("read", "read", "idempotent", "keyed", "unsafe"))
    for name, chance, least, most in (
        ("deadline", 0.4, 0.2, 400.0),
        ("in_place", 0.3, 0.5, 4000.0),
        ("horizon", 0.1, 1.0, 40_000.0),
    ):
        if dice.random() < chance:
            options[name] = _between(dice, least, most)
    if dice.random() < 0.3:
        options["attempts"] = dice.randint(1, 6)
    if dice.random() < 0.2:
        options["context"] = True
    if suspends and dice.random() < 0.4:
        options["timeout"] = _between(dice, 0.05, 60.0)
    task = (_between(dice, 0.1, 300.0), _between(dice, 0.1, 900.0)) if dice.random() < 0.3 else None
    return Script(
        steps=tuple(steps),
        options=options,
        rolls=tuple(dice.random() for _ in range(12)),
        task=task,
        suspends=suspends,
        is_heard=dice.random() < 0.5,
        is_decorated=dice.random() < 0.5,
    )


def _step(dice: random.Random, outcome: str) -> Step:
    took = dice.choice((0.0, 0.0, _between(dice, 0.001, 100.0)))
    # A client error that names a time is a limit in disguise, so the final ones name none.
    is_client = outcome in {"400", "401", "404", "422"}
    if is_client or OUTCOMES[outcome].status is None or dice.random() < 0.5:
        return Step(outcome=outcome, took=took)
    form = dice.choice(_FORMS)
    most = 4_000_000 if form == "retry-after-ms" else 40_000
    return Step(outcome=outcome, took=took, form=form, hint=int(_between(dice, 1, most)))


def _between(dice: random.Random, least: float, most: float) -> float:
    """Log-uniform: as many tenths of seconds as hundreds."""
    return float(least * (most / least) ** dice.random())


def play(script: Script, driver: str) -> Trace:
    """Run `script` on a driver, in virtual time."""
    clock = VirtualClock()
    with virtual_time(clock, LoadedDice(*script.rolls)):
        # The laws are about a call of its own; at a gate it would wait for others as well.
        options = {"breaker": False, "gate": False, "tokens": False, **script.options}
        told: list[Any] = []
        if script.is_heard:
            options["listeners"] = [told.append]
        guard = mulligan.Guard("soak", **options)
        trace = Trace(policy=guard.policy, waits=clock.sleeps)
        call = _plain_call if driver == "sync" else _async_call
        try:
            trace.answer = call(script, driver, guard, clock, trace)
        except BaseException as error:  # the soak wants to see everything
            trace.error = _alone(error)
        trace.ended = clock.now()
    trace.failures = [
        (str(e.failure.kind), type(e.decision).__name__, getattr(e.decision, "delay", None))
        for e in told
        if isinstance(e, mulligan.Failed)
    ]
    return trace


def _plain_call(
    script: Script, _: str, guard: mulligan.Guard, clock: VirtualClock, trace: Trace
) -> object:
    def scripted() -> int:
        attempt = _begin(script, clock, trace)
        clock.advance(attempt.step.took)
        return _end(attempt, clock, trace)

    call = guard.retry(scripted) if script.is_decorated else lambda: guard.call(scripted)
    if script.task is None:
        return call()
    with mulligan.task(budget=script.task[0], deadline=script.task[1]):
        return call()


def _async_call(
    script: Script, driver: str, guard: mulligan.Guard, clock: VirtualClock, trace: Trace
) -> object:
    import asyncio

    import trio

    sleep = trio.sleep if driver == "trio" else asyncio.sleep

    async def scripted() -> int:
        attempt = _begin(script, clock, trace)
        if script.suspends:
            try:
                await sleep(attempt.step.took)
            except BaseException:
                attempt.was_cut, attempt.ended = True, clock.now()
                raise
        else:
            clock.advance(attempt.step.took)
        return _end(attempt, clock, trace)

    call = guard.retry(scripted) if script.is_decorated else lambda: guard.acall(scripted)

    async def main() -> object:
        if script.task is None:
            return await call()
        async with mulligan.task(budget=script.task[0], deadline=script.task[1]):
            return await call()

    if driver == "trio":
        answer: object = trio.run(main, clock=clock.trio())
        return answer
    return clock.run(main())


def _begin(script: Script, clock: VirtualClock, trace: Trace) -> Attempt:
    step = script.steps[min(len(trace.attempts), len(script.steps) - 1)]
    attempt = Attempt(step=step, began=clock.now())
    trace.attempts.append(attempt)
    return attempt


def _end(attempt: Attempt, clock: VirtualClock, trace: Trace) -> int:
    attempt.ended, attempt.wall = clock.now(), clock.wall()
    attempt.error = attempt.step.error(attempt.wall)
    if attempt.error is not None:
        raise attempt.error
    return len(trace.attempts)


def _alone(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error

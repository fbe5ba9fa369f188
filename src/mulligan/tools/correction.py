"""Self-correction: execute, verify, and execute again with what was wrong.

    execute ──result──▶ verify ──passed──▶ Corrected
       ▲                   └──reasons──▶ Correct ──wait──▶ execute, with the attempts so far

A failure of the transport is no reason to correct anything: it is retried by its own rules, inside
of an attempt. Waits, retries and repeated attempts spend from one budget.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, overload

from ..api.guard import Guard
from ..api.task import task
from ..calls.callables import ASYNC, function_kind
from ..calls.clock import world
from ..classify.classifier import classifier as default_classifier
from ..core.backoff import Exponential
from ..core.record import record
from ..core.redaction import presentable
from ..errors import SettingError
from .execution import called
from .identity import jsonable
from .verifiers import Command, Verification, verification_of, verifier_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator

    from ..calls.budget import Task
    from ..classify.classifier import Classifier
    from ..core.backoff import Backoff
    from ..core.duration import Duration
    from ..core.failure import Effects, Failure
    from ..core.policy import Policy

__all__ = ("Correct", "Corrected", "Correction", "correct")

# 2, 4, 8 s (R-A2): a model is asked again, and no herd waits for it.
_WAITS = Exponential(first=2, cap=60, jitter="none")

_SUMMARY = 500  # characters of a result that the next attempt is shown
_REASONS = 20  # reasons that it is told; the rest are counted


@record(kw_only=True)
class Correction:
    """What an attempt is told about those before it.

    Args:
        attempt: Which attempt this is, from 1.
        attempts: How many there may be.
        previous_attempts: For each earlier one a table with ``attempt``, ``result_summary`` and
            ``failure_reasons``, as JSON has it: fit to be put into a prompt.
        correction_guidance: What to do differently, in words for a model; empty at first.
    """

    attempt: int
    attempts: int
    previous_attempts: tuple[dict[str, Any], ...] = ()
    correction_guidance: str = ""


@record(kw_only=True)
class Correct:
    """The decision to execute again, with what was wrong.

    Args:
        attempt: The attempt that did not pass.
        guidance: What the next one is told.
        delay: Seconds to wait before it.
        because: Why, in one sentence.
    """

    attempt: int
    guidance: str
    delay: float
    because: str


@record(kw_only=True, eq=False)
class Corrected:
    """What came of it; unpacks to ``result, passed``.

    Args:
        result: What the last attempt returned; None if it was rejected.
        passed: Whether it passed.
        attempts: Attempts made.
        evidence: The attempts that did not pass, as `Correction.previous_attempts` has them.
        decisions: What was decided after each of them.
        parsed: The result in the form that the verifier read it in: an instance of the model.
        error: What the last attempt raised, where the service rejected it as correctable.
        because: Why it ended, in one sentence.
    """

    result: Any
    passed: bool
    attempts: int
    evidence: tuple[dict[str, Any], ...] = ()
    decisions: tuple[Correct, ...] = ()
    parsed: Any = None
    error: Exception | None = None
    because: str = ""

    def __iter__(self) -> Iterator[Any]:
        yield self.result
        yield self.passed


@overload
def correct(  # pyright: ignore[reportOverlappingOverload] -- a coroutine function is narrower
    execute: Callable[..., Coroutine[Any, Any, Any]],
    verify: Any,
    *,
    attempts: int = ...,
    waits: Backoff = ...,
    budget: Duration | None = ...,
    guidance: Callable[[tuple[str, ...]], str] | None = ...,
    policy: Policy | str = ...,
    effects: Effects | str = ...,
    classifier: Classifier | None = ...,
) -> Coroutine[Any, Any, Corrected]: ...
@overload
def correct(
    execute: Callable[..., Any],
    verify: Any,
    *,
    attempts: int = ...,
    waits: Backoff = ...,
    budget: Duration | None = ...,
    guidance: Callable[[tuple[str, ...]], str] | None = ...,
    policy: Policy | str = ...,
    effects: Effects | str = ...,
    classifier: Classifier | None = ...,
) -> Corrected: ...
def correct(
    execute: Callable[..., Any],
    verify: Any,
    *,
    attempts: int = 3,
    waits: Backoff = _WAITS,
    budget: Duration | None = None,
    guidance: Callable[[tuple[str, ...]], str] | None = None,
    policy: Policy | str = "default",
    effects: Effects | str = "unsafe",
    classifier: Classifier | None = None,
) -> Any:
    """Execute, verify, and execute again with what was wrong, until it passes.

    Args:
        execute: What produces the result; a coroutine function makes this a coroutine. It is given
            what it takes by name of ``attempt``, ``previous_attempts``, ``correction_guidance``
            and ``correction``; a single parameter of another name gets the `Correction`.
        verify: A pydantic model, a JSON schema (a dict), a command (a list of words: it passes if
            it exits with 0), or a function of the result that returns True, or what is wrong.
        attempts: Attempts in total; failures of the transport do not count.
        waits: The waits between them: 2, 4, 8 s.
        budget: Time for waits, retries and attempts after the first, together.
        guidance: (reasons) → what the next attempt is told to do.
        policy: How failures of the transport are retried.
        effects: What happens if `execute` is called twice; see `mulligan.retry`.
        classifier: Reads what `execute` raises.

    Raises:
        Exception: What `execute` or `verify` raised, unless the service says that the call can
            be corrected (422 with ``is_retriable``).
        SettingError: An invalid argument.
    """
    if attempts < 1:
        raise SettingError(f"attempts needs a whole number >= 1; got {attempts!r}")
    reader = classifier or default_classifier
    options: Any = {"policy": policy, "classifier": reader}
    loop = _Loop(
        attempts=attempts,
        waits=waits,
        guidance=guidance,
        classifier=reader,
        takes=_parameters(execute),
    )
    check = verifier_of(verify)
    if function_kind(check) == ASYNC != function_kind(execute):
        raise SettingError("verify is async, so execute has to be; then await correct(…)")
    ways = (
        Guard(effects=effects, **options),  # type: ignore[arg-type]
        Guard(effects="read", **options),
        execute,
        check,
    )
    if function_kind(execute) == ASYNC:
        return _adrive(loop, budget, *ways)
    return _drive(loop, budget, *ways)


class _Loop:
    """The steps of a correction: yields what to do, is sent what came of it."""

    def __init__(
        self,
        *,
        attempts: int,
        waits: Backoff,
        guidance: Callable[[tuple[str, ...]], str] | None,
        classifier: Classifier,
        takes: tuple[str, ...] | None,
    ) -> None:
        self._attempts, self._waits, self._takes = attempts, waits, takes
        self._guidance, self._classifier = guidance, classifier

    def steps(self, budget: Task) -> Generator[tuple[str, Any], Any, Corrected]:
        seen: list[dict[str, Any]] = []
        decisions: list[Correct] = []
        told = ""
        for attempt in range(1, self._attempts + 1):
            correction = Correction(
                attempt=attempt,
                attempts=self._attempts,
                previous_attempts=tuple(seen),
                correction_guidance=told,
            )
            error: Exception | None = None
            result, verification = None, Verification()
            began, spent = budget.clock.now(), budget.spent
            try:
                result = yield "execute", self._given(correction)
            except Exception as caught:
                reasons = self._correctable(caught)
                if not reasons:
                    raise
                error, verification = caught, Verification(reasons)
            if error is None:
                verification = verification_of((yield "verify", result))
            if attempt > 1:  # what was retried inside is booked already
                took = budget.clock.now() - began
                budget.charge(max(took - (budget.spent - spent), 0.0))
            if not verification.reasons:
                return Corrected(
                    result=result,
                    passed=True,
                    attempts=attempt,
                    evidence=tuple(seen),
                    decisions=tuple(decisions),
                    parsed=verification.parsed,
                    because=f"attempt {attempt} passed",
                )
            seen.append(_evidence(attempt, result, error, verification.reasons))
            told = self._told(seen, verification.reasons)
            delay = self._waits.delay(attempt, world().dice.roll())
            because = f"attempt {attempt} of {self._attempts} did not pass"
            if attempt < self._attempts and not budget.reserve(delay):
                because += ", and the budget is used up"
            elif attempt < self._attempts:
                decisions.append(
                    Correct(attempt=attempt, guidance=told, delay=delay, because=because)
                )
                yield "sleep", delay
                continue
            return Corrected(
                result=result,
                passed=False,
                attempts=attempt,
                evidence=tuple(seen),
                decisions=tuple(decisions),
                parsed=verification.parsed,
                error=error,
                because=because,
            )
        raise AssertionError("the last attempt returns")

    def _given(self, correction: Correction) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `execute`."""
        if self._takes is None:
            return (correction,), {}
        known = {
            "attempt": correction.attempt,
            "previous_attempts": list(correction.previous_attempts),
            "correction_guidance": correction.correction_guidance,
            "correction": correction,
        }
        return (), {name: known[name] for name in self._takes}

    def _correctable(self, error: Exception) -> tuple[str, ...]:
        """What is wrong with the call, if the service says that a corrected one can pass."""
        failure = self._classifier.classify(error, now=world().clock.wall())
        if failure.status != 422 or failure.is_retriable is not True:
            return ()
        return _said(failure)

    def _told(self, seen: list[dict[str, Any]], reasons: tuple[str, ...]) -> str:
        if self._guidance is not None:
            return self._guidance(reasons)
        last = seen[-1]
        lines = [f"Attempt {last['attempt']} of {self._attempts} did not pass:"]
        lines += [f"- {each}" for each in last["failure_reasons"]]
        same = [
            each["attempt"]
            for each in seen[:-1]
            if each["result_summary"] == last["result_summary"]
        ]
        if same:
            lines.append(f"The result is the same as in attempt {same[-1]}: do it differently.")
        lines.append("Correct this, and keep what was right.")
        return "\n".join(lines)


_KNOWN = ("attempt", "previous_attempts", "correction_guidance", "correction")


def _parameters(execute: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names that `execute` takes by name; None if it takes the correction as it is."""
    if not callable(execute):
        raise SettingError(f"execute needs a function; got {execute!r}")
    parameters = inspect.signature(execute).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return _KNOWN
    taken = tuple(name for name in parameters if name in _KNOWN)
    needed = [
        each.name
        for each in parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_POSITIONAL
    ]
    others = [name for name in needed if name not in _KNOWN]
    if len(others) == 1 and not taken:
        return None
    if others:
        raise SettingError(
            f"execute takes {', '.join(others)}; it is given {', '.join(_KNOWN)}, or the "
            f"correction as its only argument"
        )
    return taken


def _said(failure: Failure) -> tuple[str, ...]:
    fields = tuple(f"{name}: {about}" for name, about in failure.fields)
    return fields or (failure.message or "the service rejected it (422)",)


def _evidence(
    attempt: int, result: Any, error: Exception | None, reasons: tuple[str, ...]
) -> dict[str, Any]:
    kept = [presentable(each, 1000) for each in reasons[:_REASONS]]
    if len(reasons) > _REASONS:
        kept.append(f"and {len(reasons) - _REASONS} more")
    if error is not None:
        summary = "rejected by the service"
    else:
        try:
            summary = result if isinstance(result, str) else str(jsonable(result))
        except Exception:  # noqa: BLE001 -- for a model to read
            summary = f"a {type(result).__name__}"
    return {
        "attempt": attempt,
        "result_summary": presentable(summary, _SUMMARY),
        "failure_reasons": kept,
    }


def _drive(  # noqa: PLR0917 -- a loop, whole
    loop: _Loop,
    budget: Duration | None,
    guard: Guard,
    reading: Guard,
    execute: Callable[..., Any],
    verify: Callable[[Any], Any],
) -> Corrected:
    """Do the steps. Its twin is `_adrive`; they differ in how they call and how they wait."""

    def do(what: str, given: Any) -> Any:
        if what == "execute":
            return _plain(guard.call(execute, *given[0], **given[1]), what)
        if what == "verify":
            return _plain(reading.call(verify, given), what)
        return own.clock.sleep(given)

    with task(budget=budget) as own:
        steps = loop.steps(own)
        try:
            step = next(steps)
            while True:
                try:
                    answer = do(*step)
                except Exception as error:  # noqa: BLE001 -- the loop decides, or raises it
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


def _plain(answer: Any, what: str) -> Any:
    """`answer`, unless it is a coroutine that nothing here would await."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise SettingError(
            f"{what} returned a coroutine; make execute an async function, and await correct(…)"
        )
    return answer


async def _adrive(  # noqa: PLR0917 -- a loop, whole
    loop: _Loop,
    budget: Duration | None,
    guard: Guard,
    reading: Guard,
    execute: Callable[..., Any],
    verify: Callable[[Any], Any],
) -> Corrected:
    async def check(result: Any) -> Any:
        if isinstance(verify, Command):
            return await verify.checked()
        return await called(lambda: verify(result), {}, is_inline=True)

    async def do(what: str, given: Any) -> Any:
        if what == "execute":
            return await guard.acall(execute, *given[0], **given[1])
        if what == "verify":
            return await reading.acall(check, given)
        return await own.clock.asleep(given)

    with task(budget=budget) as own:
        steps = loop.steps(own)
        try:
            step = next(steps)
            while True:
                try:
                    answer = await do(*step)
                except Exception as error:  # noqa: BLE001 -- the loop decides, or raises it
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

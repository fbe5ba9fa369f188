"""Self-correction: execute, verify, and execute again with what was wrong.

    execute ──result──▶ verify ──passed──▶ Corrected
       ▲                   └──reasons──▶ Correct ──wait──▶ execute, with the attempts so far

A failure of the transport is not corrected: it is retried by its own rules, inside of an attempt.
Waits, retries and repeated attempts spend from one budget.
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
from .definition import jsonable
from .execution import called
from .verifiers import Command, Verification, verification_of, verifier_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import TypedDict, Unpack

    from ..classify.classifier import Classifier
    from ..core.backoff import Backoff
    from ..core.duration import Duration
    from ..core.failure import Effects
    from ..core.policy import Policy
    from ..core.ports import Clock

    class CorrectOptions(TypedDict, total=False):
        """The options of `correct`."""

        attempts: int
        waits: Backoff
        budget: Duration | None
        guidance: Callable[[tuple[str, ...]], str] | None
        policy: Policy | str
        effects: Effects | str
        classifier: Classifier | None


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
    """The decision to execute again, with what was wrong."""

    attempt: int  # the one that did not pass
    guidance: str  # what the next one is told
    delay: float  # seconds to wait before it
    because: str  # in one sentence


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
    **options: Unpack[CorrectOptions],
) -> Coroutine[Any, Any, Corrected]: ...
@overload
def correct(
    execute: Callable[..., Any], verify: Any, **options: Unpack[CorrectOptions]
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
    steps = _Steps(execute, verify, effects, {"policy": policy, "classifier": reader})
    loop = _loop(steps, attempts, waits, budget, guidance, reader)
    return loop if steps.is_async else _returned(loop)


class _Steps:
    """What a correction does: awaited, or called as it is where `execute` is a plain function.

    Then no step suspends, so that `_returned` can run the same loop without an event loop.
    """

    def __init__(
        self, execute: Callable[..., Any], verify: Any, effects: Any, options: dict[str, Any]
    ) -> None:
        self._execute, self._takes = execute, _parameters(execute)
        self._verify = verifier_of(verify)
        self.is_async = function_kind(execute) == ASYNC
        if function_kind(self._verify) == ASYNC and not self.is_async:
            raise SettingError("verify is async, so execute has to be; then await correct(…)")
        self._guard = Guard(effects=effects, **options)
        self._reading = Guard(effects="read", **options)

    async def execute(self, correction: Correction) -> Any:
        args: tuple[Any, ...] = (correction,)
        kwargs: dict[str, Any] = {}
        if self._takes is not None:
            known = {
                "attempt": correction.attempt,
                "previous_attempts": list(correction.previous_attempts),
                "correction_guidance": correction.correction_guidance,
                "correction": correction,
            }
            args, kwargs = (), {name: known[name] for name in self._takes}
        if self.is_async:
            return await self._guard.acall(self._execute, *args, **kwargs)
        return _plain(self._guard.call(self._execute, *args, **kwargs), "execute")

    async def verify(self, result: Any) -> Verification:
        if self.is_async:
            return verification_of(await self._reading.acall(self._averify, result))
        return verification_of(_plain(self._reading.call(self._verify, result), "verify"))

    async def _averify(self, result: Any) -> Any:
        if isinstance(self._verify, Command):
            return await self._verify.checked()
        return await called(lambda: self._verify(result), {}, is_inline=True)

    async def sleep(self, clock: Clock, delay: float) -> None:
        if self.is_async:
            await clock.asleep(delay)
        else:
            clock.sleep(delay)


def _plain(answer: Any, what: str) -> Any:
    """`answer`, unless it is a coroutine that nothing here would await."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise SettingError(
            f"{what} returned a coroutine; make execute an async function, and await correct(…)"
        )
    return answer


def _returned(loop: Coroutine[Any, Any, Corrected]) -> Corrected:
    """What the loop returns, whose steps do not suspend."""
    try:
        loop.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("a plain step has suspended")


async def _loop(  # noqa: PLR0917 -- as `correct` is given them
    steps: _Steps,
    attempts: int,
    waits: Backoff,
    budget: Duration | None,
    guidance: Callable[[tuple[str, ...]], str] | None,
    classifier: Classifier,
) -> Corrected:
    seen: list[dict[str, Any]] = []
    decisions: list[Correct] = []
    told, attempt = "", 0
    with task(budget=budget) as own:
        while True:
            attempt += 1
            began, spent = own.clock.now(), own.spent
            result, error = None, None
            try:
                result = await steps.execute(
                    Correction(
                        attempt=attempt,
                        attempts=attempts,
                        previous_attempts=tuple(seen),
                        correction_guidance=told,
                    )
                )
            except Exception as caught:
                error, verification = caught, Verification(_correctable(classifier, caught))
                if not verification.reasons:
                    raise
            else:
                verification = await steps.verify(result)
            if attempt > 1:  # what was retried inside is booked already
                took = own.clock.now() - began
                own.charge(max(took - (own.spent - spent), 0.0))
            because, reasons = f"attempt {attempt} passed", verification.reasons
            if reasons:
                because = f"attempt {attempt} of {attempts} did not pass"
                seen.append(_evidence(attempt, result, error, reasons))
                told = _guidance(seen, attempts) if guidance is None else guidance(reasons)
                delay = waits.delay(attempt, world().dice.roll())
                if attempt < attempts and own.reserve(delay):
                    decisions.append(
                        Correct(attempt=attempt, guidance=told, delay=delay, because=because)
                    )
                    await steps.sleep(own.clock, delay)
                    continue
                if attempt < attempts:
                    because += ", and the budget is used up"
            return Corrected(
                result=result,
                passed=not reasons,
                attempts=attempt,
                evidence=tuple(seen),
                decisions=tuple(decisions),
                parsed=verification.parsed,
                error=error,
                because=because,
            )


def _correctable(classifier: Classifier, error: Exception) -> tuple[str, ...]:
    """What is wrong with the call, if the service says that a corrected one can pass."""
    failure = classifier.classify(error, now=world().clock.wall())
    if failure.status != 422 or failure.is_retriable is not True:
        return ()
    fields = tuple(f"{name}: {about}" for name, about in failure.fields)
    return fields or (failure.message or "the service rejected it (422)",)


def _guidance(seen: list[dict[str, Any]], attempts: int) -> str:
    """What the next attempt is told, if the caller does not say it."""
    *earlier, last = seen
    lines = [f"Attempt {last['attempt']} of {attempts} did not pass:"]
    lines += [f"- {each}" for each in last["failure_reasons"]]
    same = [each["attempt"] for each in earlier if each["result_summary"] == last["result_summary"]]
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

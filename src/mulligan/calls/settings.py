"""Settings of a guard, as its calls use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..core.adaptive import RecentFailures
    from ..core.admission import Admission
    from ..core.dead_letter import ExhaustedCall
    from ..core.events import Event
    from ..core.failure import Effects, Failure
    from ..core.policy import Policy
    from ..core.ports import Clock, Dice
    from ..core.timeouts import Timeouts
    from ..errors import StoreError
    from ..shared.admission import TargetCall

from ..core.record import record

__all__ = ("APPLIED", "NOT_APPLIED", "NO_FALLBACK", "CallSettings", "Classify", "DeadLetterWriter")


class _Marker:
    """A value of an option that no answer or fallback of the caller's can be."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


# None is a value that a fallback may have.
NO_FALLBACK = _Marker("no fallback")

# What ``verify=`` returns instead of the call's result: it was not applied and may be made again;
NOT_APPLIED = _Marker("NOT_APPLIED")
# it was applied, and its result is None. None itself means: could not find out.
APPLIED = _Marker("APPLIED")


class Classify(Protocol):
    """What reads an exception; `Classifier.classify` is one."""

    def __call__(self, error: BaseException, /, *, now: float) -> Failure: ...


class DeadLetterWriter(Protocol):
    """Where calls that ran out of something are written down.

    What is returned says why it was written elsewhere than in the store.
    """

    def write(self, lost: ExhaustedCall, /) -> StoreError | None: ...

    async def awrite(self, lost: ExhaustedCall, /) -> StoreError | None: ...


class Observe(Protocol):
    """What reads the limits that an answer or an exception states."""

    def __call__(self, thing: Any, /, *, now: float) -> Iterable[Any]: ...


@record(kw_only=True, eq=False)
class CallSettings:
    """Everything a call needs to know about its guard.

    Args:
        policy: The rules.
        effects: What repeating does.
        classify: (exception, now=wall time) → Failure.
        unheard: Told of an exhaustion, an opened breaker or a lost store that no listener heard.
        target: The dependency, or empty.
        listeners: Called with each event.
        wants_successes: Whether one of them wants to hear of first successes.
        judge: (answer) → Failure or None.
        verify: Called with the call's arguments; returns its result, or NOT_APPLIED.
        resume: Called with what a broken stream has delivered and the call's arguments; returns the
            stream of the rest.
        fallback: A value, or a function of the error; NO_FALLBACK for none.
        on_exhausted: Told of the error when the call has run out of something.
        timeouts: Limits of each attempt.
        timeout_to: The parameter through which the function takes its limit.
        metadata: What `current().metadata` carries.
        admissions: Asked before each attempt, outermost first.
        letters: Where calls that ran out of something are written down, if anywhere.
        shared_target: Finds what all calls to the target share, in the world around the call;
            None without a target.
        observe: (answer, now=wall time) → what it stated about limits.
        estimate: Called with the call's arguments: tokens that it may take.
        spent: (answer) → tokens that it took; with `observe` only.
        observe_error: (exception, now=wall time) → the same for failures.
        recent_failures: What the guard has seen fail lately, where its policy adapts.
        clock: Instead of the world's.
        dice: Instead of the world's.
    """

    policy: Policy
    effects: Effects
    classify: Classify
    unheard: Callable[[Event], None]
    target: str = ""
    listeners: tuple[Callable[[Event], None], ...] = ()
    wants_successes: bool = False
    judge: Callable[[Any], Failure | None] | None = None
    verify: Callable[..., Any] | None = None
    resume: Callable[..., Any] | None = None
    fallback: Any = NO_FALLBACK
    on_exhausted: Callable[[BaseException], object] | None = None
    timeouts: Timeouts | None = None
    timeout_to: str = ""
    metadata: Mapping[str, object]
    admissions: tuple[Admission, ...] = ()
    letters: DeadLetterWriter | None = None
    shared_target: Callable[[float], TargetCall] | None = None
    observe: Observe | None = None
    estimate: Callable[..., float] | None = None
    spent: Callable[[Any], float | None] | None = None
    observe_error: Observe | None = None
    recent_failures: RecentFailures | None = None
    clock: Clock | None = None
    dice: Dice | None = None

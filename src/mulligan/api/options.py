"""The options of a guard, as type checkers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..classify.classifier import Classifier
    from ..core.admission import Admission
    from ..core.backoff import Backoff
    from ..core.duration import Duration
    from ..core.events import Event
    from ..core.failure import Effects, Failure
    from ..core.policy import Policy
    from ..core.ports import Clock, Dice, Store
    from ..core.shared_settings import Breaker, Gate, Tokens
    from ..core.timeouts import Timeouts

__all__ = ("OPTIONS", "OTHER_WORDS", "SHARED", "GuardOptions", "OnceOptions", "Options")


class Options(TypedDict, total=False):
    """What `retry` and `attempts` take, all of it optional.

    Keys:
        policy: A Policy, or the name of a preset. Default: ``"default"``.
        effects: What happens if the call is made twice: ``read``, ``idempotent``, ``keyed`` or
            ``unsafe``. Default: the policy's, else ``unsafe``.
        on: Exception classes to retry in addition to what the classifier knows, by the rule for
            ``server``.
        attempts: Attempts in total, for every kind that is retried.
        wait: The wait before each retry, where the server names no time.
        backoff: The same as a curve: ``Exponential(first=1, cap=10)``, Linear, Fixed, Schedule.
        deadline: Time for the whole call, from its start.
        patience: Time without progress in which attempts may start, counted from the first
            failure or from the target's last answer to any caller; never less than the deadline.
        in_place: The longest wait to sleep through.
        horizon: The longest wait at all.
        timeout: Time for each attempt, or Timeouts. Plain functions need `timeout_to` as well.
        service: A service whose usual timeouts are wanted, ``"anthropic"``, instead of `timeout`;
            see ``mulligan.SERVICE_TIMEOUTS``.
        timeout_to: The parameter that the function takes its time limit by.
        judge: (answer) → Failure or None, for answers that are failures.
        verify: Called with the call's arguments after an attempt that may have been applied:
            returns the call's result, NOT_APPLIED, APPLIED where that result is None, or None
            if it could not find out.
        resume: Continues a stream that broke after it had delivered something: called with a tuple
            of its items so far and the call's arguments, returns the stream of the rest. Not for
            ``unsafe`` effects. Default: such a stream is broken off.
        on_exhausted: Told of the error when attempts, time or budget have run out.
        validator: (failure) → bool, for conditional failures: has the condition changed?
        dead_letters: Whether a call that ran out of attempts, time or budget is written down, to be
            looked at and replayed; True for the guard's store, or a store or its address.
        adaptive: Whether the policy learns from what has failed lately (see `core.adaptive`).
        classifier: Instead of the default one; see ``mulligan.classifier.adding``.
        context: Whether `current()` is known in first attempts, too.
        metadata: What ``current().metadata`` carries.
        listeners: Callables that take events.
        admissions: Asked before each attempt, outermost first.
        clock: Instead of the machine's.
        dice: Instead of the machine's.
    """

    policy: Policy | str
    effects: Effects | Literal["read", "idempotent", "keyed", "unsafe"] | None
    on: type[Exception] | tuple[type[Exception], ...]
    attempts: int | None
    wait: Duration | None
    backoff: Backoff | None
    deadline: Duration | None
    patience: Duration | None
    in_place: Duration | None
    horizon: Duration | None
    timeout: Duration | Timeouts | None
    service: str | None
    timeout_to: str | None
    judge: Callable[[Any], Failure | None] | None
    verify: Callable[..., Any] | None
    resume: Callable[..., Any] | None
    on_exhausted: Callable[[BaseException], object] | None
    validator: Callable[[Failure], bool] | None
    dead_letters: bool | Store | str
    adaptive: bool
    classifier: Classifier | None
    context: bool
    metadata: Mapping[str, object] | None
    listeners: Iterable[Callable[[Event], None]]
    admissions: Iterable[Admission]
    clock: Clock | None
    dice: Dice | None


class GuardOptions(Options, total=False):
    """What `Guard` takes: `Options`, what a target's callers share, and a fallback.

    Keys:
        scope: Which account at the target; state is shared within it. Stored as a salted hash.
        store: Where it is shared: a store or its address, ``sqlite:PATH``, ``redis://HOST``.
            Default: ``MULLIGAN_STORE``, else this process's memory.
        breaker: When the target is not called any more: a Breaker, or whether to go by the
            policy's. Default: True.
        gate: How its limits are read: a Gate, or whether to go by the policy's. Default: True.
        tokens: How much retrying it allows all callers together: Tokens, or whether to go by the
            policy's. Default: True.
        when_open: ``wait`` for a target whose breaker is open, and for retry tokens, as long as
            patience, deadline and budget allow; or ``fail`` at once. Default: the policy's, else
            ``wait``, and ``fail`` where there is a fallback.
        observe: (answer) → its headers, or the quotas it states; the gate then knows how much is
            left before a limit is reached. ``mulligan.headers_of`` does it by shape.
        estimate: Tokens of a model that a call is thought to take, where answers state a limit of
            them: a number, or a function of the call's arguments. They are reserved at the gate.
        spent: (answer) → the tokens that it took; the difference is settled.
        fallback: What to return, or a function of the error to call, instead of raising. Apart
            from the others because it changes what the guarded function returns.
    """

    scope: str
    store: Store | str | None
    breaker: bool | Breaker
    gate: bool | Gate
    tokens: bool | Tokens
    when_open: Literal["wait", "fail"] | None
    observe: Callable[[Any], Any] | None
    estimate: float | Callable[..., float] | None
    spent: Callable[[Any], float | None] | None
    fallback: Any


class OnceOptions(TypedDict, total=False):
    """What `once_per` takes: see `Once`."""

    scope: str | tuple[str, ...]
    exclude: tuple[str, ...]
    ttl: Duration | None
    lease: Duration
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


OPTIONS = frozenset(GuardOptions.__annotations__) | frozenset(Options.__annotations__)

_ATTEMPTS = "write attempts, the total, the first attempt included"
_CURVE = "write backoff=mulligan.Exponential(first=0.5, factor=2, cap=30, jitter='full')"
_LISTEN = "write listeners=[…]; each is called with an event"
_ON = "write on=ConnectionError, or on=(ConnectionError, OSError)"

# What other libraries call it (tenacity, stamina, backoff, retry, urllib3), and what we do.
OTHER_WORDS = {
    **dict.fromkeys(
        ("max_retries", "retries", "max_attempts", "tries", "max_tries", "num_retries", "total"),
        _ATTEMPTS,
    ),
    "stop": "write attempts, the total, or patience or deadline for a bound in time",
    "max_time": "write deadline, for the whole call, or patience, for the time without progress",
    "max_delay": _CURVE,
    "delay": "write wait, the same before each retry, or backoff for a curve",
    "interval": "write wait, the same before each retry, or backoff for a curve",
    **dict.fromkeys(
        (
            *("base_delay", "initial_delay", "wait_initial", "wait_max", "wait_jitter"),
            *("wait_exp_base", "exp_base", "backoff_factor", "backoff_max", "factor", "multiplier"),
            *("jitter", "max_value", "wait_gen"),
        ),
        _CURVE,
    ),
    **dict.fromkeys(
        ("retry_on", "exceptions", "exception", "retry", "retry_if", "retry_on_exception"), _ON
    ),
    "giveup": "write classifier=mulligan.classifier.adding(…), which says what passes by itself",
    "retry_on_result": "write judge, a function of the answer that returns a Failure or None",
    "status_forcelist": "write policy=Policy(…, statuses={…}); known statuses are read already",
    "allowed_methods": 'write effects="read", "idempotent", "keyed" or "unsafe"',
    "idempotent": 'write effects="idempotent"',
    "reraise": "leave it out: the caller always gets its own exception",
    **dict.fromkeys(
        ("before", "after", "before_sleep", "on_backoff", "on_retry", "hooks"), _LISTEN
    ),
    **dict.fromkeys(("logger", "on_success"), _LISTEN),
    "on_giveup": "write on_exhausted, a function of the error",
    "retry_error_callback": "write fallback, a value or a function of the error",
    "default": "write fallback, a value or a function of the error",
    "sleep": "write clock, or use mulligan.testing.virtual_time() in tests",
    "circuit_breaker": "write breaker=mulligan.Breaker(…)",
    "fail_max": "write breaker=mulligan.Breaker(failures=5)",
    "reset_timeout": 'write breaker=mulligan.Breaker(open_for="60s")',
}

# What belongs to a target, and means nothing without one.
SHARED = (
    *("scope", "store", "breaker", "gate", "tokens", "when_open", "observe", "estimate", "spent"),
)

"""Policy: the table of rules that says how each kind of failure is handled.

A policy is data. It says nothing about a call in progress, knows no clock, and can be compared,
printed and loaded from a file. Kinds without a rule are not retried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from ..errors import SettingError
from .backoff import SHAPES, Backoff, Exponential
from .duration import Duration, is_number, seconds
from .failure import Effects, Failure, Kind
from .record import record
from .schema import Seconds
from .shared_settings import Breaker, Gate, Tokens
from .timeouts import Timeouts

__all__ = ("Check", "FrozenDict", "HintMode", "Policy", "Rule", "WhenOpen")

K = TypeVar("K")
V = TypeVar("V")

# replace: the server's time instead of the backoff. at_least: the longer of the two.
# Never their sum, never sooner than the hint.
HintMode = Literal["replace", "at_least"]

# What a call does while the target's breaker is open, or its retry tokens are used up.
WhenOpen = Literal["wait", "fail"]

# Whether the policy's validator is asked before a repeat: never; if there is one; or always, so
# that without one the failure is final.
Check = Literal["never", "if_given", "required"]

# The longest wait that R-B14 allows, and the default horizon.
_SIX_HOURS = 21_600.0

# The longest that the target may give no sign of life, by default; and the longest single
# wait that is slept through. Limits of providers are counted in minutes; longer ones are parked.
_QUARTER_OF_AN_HOUR = 900.0


class FrozenDict(dict[K, V]):
    """A dict for the tables of a policy: presets are shared by the whole process.

    A dict all the same, so that it can be compared, copied, pickled and written as JSON.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a policy's tables cannot be changed; make a new one with replace()")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = _refuse
    setdefault = update = _refuse  # pyright: ignore[reportAssignmentType] -- both are overloaded

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


@record(kw_only=True)
class Rule:
    """How one kind of failure is answered.

    Args:
        attempts: Attempts in total that may end with this kind, the first included; None where
            time alone is the bound.
        backoff: The wait where the server named no time.
        hint: What a time the server named does to the backoff.
        missing_hint: The wait for a limit without a time, where it differs from `backoff`.
        check: Whether the policy's validator has a say.
        is_paced: Whether a limit without a time waits at the target's gate, where there is one,
            and not for its own backoff.
    """

    attempts: int | None = 5
    backoff: Backoff = Exponential()
    hint: HintMode = "replace"
    missing_hint: Backoff | None = None
    check: Check = "never"
    is_paced: bool = False

    def __post_init__(self) -> None:
        if self.attempts is not None and not _is_count(self.attempts):
            raise SettingError(
                f"Rule.attempts needs a whole number >= 1, or None for a bound in time; "
                f"got {self.attempts!r} (attempts are the total, the first one included)"
            )
        for name in ("backoff", "missing_hint"):
            backoff = getattr(self, name)
            if backoff is not None and not isinstance(backoff, SHAPES):
                raise SettingError(
                    f"Rule.{name} needs Exponential, Linear, Fixed or Schedule; got {backoff!r}"
                )
        if self.hint not in {"replace", "at_least"}:
            raise SettingError(f"Rule.hint needs replace or at_least; got {self.hint!r}")
        if self.check not in {"never", "if_given", "required"}:
            raise SettingError(f"Rule.check needs never, if_given or required; got {self.check!r}")


@record(kw_only=True)
class Policy:
    """What is retried, how often, how long, and when to stop.

    Args:
        name: For people: ``default``, ``nightly review``.
        rules: One rule per kind; a kind without one is not retried.
        statuses: HTTP statuses that may be retried, where the kinds alone would allow more;
            None means the kinds decide. Limits are retried whatever their status.
        effects: What repeating does, where the caller does not say.
        deadline: Seconds from the start of a call to its end, cutting a running attempt where it
            can be cut; None for none.
        most_attempts: Attempts of all kinds together; None where each rule counts for itself.
        patience: Seconds without progress in which a wait may end and an attempt may start,
            counted from the first failure, or from the last answer that the target gave to
            any caller while this call waited for its turn; a running attempt is not cut. None means
            15 minutes, or `in_place` or `deadline` where one of them is longer: a caller that
            allows an hour for the call wants its limits waited for.
        when_open: ``wait`` for the probe of an open breaker and for retry tokens, or ``fail`` at
            once. None waits, except where the guard has a fallback.
        budget: Seconds that one call may spend on waits and on attempts after the first.
        in_place: The longest wait that is slept through; a longer one parks the call.
        horizon: The longest wait at all; beyond it the call gives up and says when.
        timeouts: Limits of each attempt.
        codes: Application codes with their kind, ``{"ORDER_LOCKED": "conditional"}`` (R-C16).
        key_ttl: How long an idempotency key is remembered; not less than the longest wait (E-F8).
        breaker: When a target is not called any more; None for never (R-K9).
        breakers: The same for targets of these names, instead of `breaker`.
        gate: How a target's limits are read; None to read none.
        tokens: How much retrying a target allows all its callers together; None for any amount.
        store: The address of the store where these are shared, unless a guard or the environment
            names another.
        validator: Asked before a repeat where a rule's `check` says so: has the condition changed?
    """

    name: str = "custom"
    rules: Mapping[Kind, Rule] = field(default_factory=dict)
    statuses: frozenset[int] | None = None
    effects: Effects | None = None
    deadline: Seconds | None = None
    most_attempts: int | None = None
    patience: Seconds | None = None
    when_open: WhenOpen | None = None
    budget: Seconds | None = None
    in_place: Seconds = _QUARTER_OF_AN_HOUR
    horizon: Seconds = _SIX_HOURS
    timeouts: Timeouts | None = None
    codes: Mapping[str, Kind] = field(default_factory=dict)
    key_ttl: Seconds | None = None
    breaker: Breaker | None = Breaker()
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    gate: Gate | None = Gate()
    tokens: Tokens | None = Tokens()
    store: str = ""
    validator: Annotated[Callable[[Failure], bool] | None, "python only"] = None

    # Read by pydantic when a file is validated against this class: an unknown key is an error.
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 -- pydantic's protocol

    def __post_init__(self) -> None:
        codes = {code: Kind.of(kind, f"codes[{code!r}]") for code, kind in self.codes.items()}
        object.__setattr__(self, "rules", FrozenDict(_checked(self.rules)))
        object.__setattr__(self, "codes", FrozenDict(codes))
        object.__setattr__(self, "breakers", FrozenDict(self.breakers))
        self._check_shared()
        if self.statuses is not None:
            if not all(is_number(status) for status in self.statuses):
                raise SettingError(f"statuses needs numbers such as 429; got {self.statuses!r}")
            object.__setattr__(self, "statuses", frozenset(self.statuses))
        if self.effects is not None:
            object.__setattr__(self, "effects", Effects.of(self.effects))
        for each in ("deadline", "patience", "budget", "in_place", "horizon", "key_ttl"):
            value = getattr(self, each)
            if value is not None:
                object.__setattr__(self, each, seconds(value, name=each))
        if self.most_attempts is not None and not _is_count(self.most_attempts):
            raise SettingError(
                f"most_attempts needs a whole number >= 1, or None; got {self.most_attempts!r}"
            )
        if self.when_open not in {None, "wait", "fail"}:
            raise SettingError(f"when_open needs wait or fail; got {self.when_open!r}")
        if self.deadline is not None and self.deadline <= 0:
            raise SettingError(f"deadline needs more than 0 s; got {self.deadline:g}")
        if self.horizon < self.in_place:
            # A wait that may be slept through may be waited at all.
            object.__setattr__(self, "horizon", self.in_place)

    def _check_shared(self) -> None:
        named = {f"breakers[{target!r}]": each for target, each in self.breakers.items()}
        for name, needed, value in (
            ("breaker", Breaker, self.breaker),
            ("gate", Gate, self.gate),
            ("tokens", Tokens, self.tokens),
            *((name, Breaker, each) for name, each in named.items()),
        ):
            if not isinstance(value, needed) and (value is not None or name in named):
                raise SettingError(f"{name} needs a {needed.__name__} or None; got {value!r}")

    @property
    def bound(self) -> float:
        """Seconds without progress after which waiting and starting end."""
        if self.patience is not None:
            return self.patience
        return max(_QUARTER_OF_AN_HOUR, self.in_place, self.deadline or 0.0)

    def retries(self, status: int) -> bool:
        """Whether an HTTP status may be retried at all under this policy."""
        return self.statuses is None or status in self.statuses

    def but(
        self,
        *,
        rules: Mapping[Kind | str, Rule | None] | None = None,
        backoff: Backoff | None = None,
        attempts: int | None = None,
        deadline: Duration | None = None,
        patience: Duration | None = None,
        budget: Duration | None = None,
        in_place: Duration | None = None,
        horizon: Duration | None = None,
        when_open: WhenOpen | None = None,
        validator: Callable[[Failure], bool] | None = None,
    ) -> Policy:
        """This policy with some rules or bounds changed; None leaves a bound as it is.

        Args:
            rules: Rules that replace those of the same kind, ``{"timeout": Rule(attempts=2)}``;
                None for a kind that is not to be retried. Other kinds keep theirs.
            backoff: The wait of every rule, where the server names no time.
            attempts: The total, whatever the attempts fail with, those bounded by time included.
            deadline: See `Policy`, as for the others.
            patience: See `Policy`.
            budget: See `Policy`.
            in_place: See `Policy`.
            horizon: See `Policy`.
            when_open: See `Policy`.
            validator: See `Policy`.

        Raises:
            SettingError: One of them is invalid.
        """
        changes: dict[str, object] = {
            name: seconds(value, name=name)
            for name, value in (
                ("deadline", deadline),
                ("patience", patience),
                ("budget", budget),
                ("in_place", in_place),
                ("horizon", horizon),
            )
            if value is not None
        }
        if in_place is None and "horizon" in changes:  # the longest wait at all: none is longer
            changes["in_place"] = min(self.in_place, seconds(horizon or 0, name="horizon"))
        if attempts is not None:
            if not _is_count(attempts):
                raise SettingError(
                    f"attempts needs a whole number >= 1; got {attempts!r} "
                    f"(the total, the first one included)"
                )
            changes["most_attempts"] = attempts
        if rules is not None or backoff is not None or attempts is not None:
            changes["rules"] = _changed(self.rules, rules or {}, backoff, attempts)
        if when_open is not None:
            changes["when_open"] = when_open
        if validator is not None:
            changes["validator"] = validator
        return replace(self, **changes) if changes else self  # type: ignore[arg-type]


def _changed(
    rules: Mapping[Kind, Rule],
    others: Mapping[Kind | str, Rule | None],
    backoff: Backoff | None,
    attempts: int | None,
) -> dict[Kind, Rule]:
    given = {Kind.of(kind, "rules"): rule for kind, rule in others.items()}
    kept = {kind: rule for kind, rule in {**rules, **given}.items() if rule is not None}
    every: dict[str, Any] = {}
    if backoff is not None:
        if not isinstance(backoff, SHAPES):
            raise SettingError(
                f"backoff needs Exponential, Linear, Fixed or Schedule; got {backoff!r}"
            )
        every = {"backoff": backoff, "missing_hint": None}
    if attempts is not None:
        every["attempts"] = attempts
    checked = _checked(kept)
    return {kind: replace(rule, **every) for kind, rule in checked.items()} if every else checked


def _checked(rules: Mapping[Kind, Rule]) -> dict[Kind, Rule]:
    for kind, rule in rules.items():
        if not isinstance(rule, Rule):
            raise SettingError(f"rules[{str(kind)!r}] needs a Rule; got {rule!r}")
    return {Kind.of(kind, "rules"): rule for kind, rule in rules.items()}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

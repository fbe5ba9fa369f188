"""Limits of one account, as its runs know them: a state machine. Pure.

    free ──a run meets a limit──▶ limited ──the time to look again──▶ one run tries
      ▲                             ▲                                    │
      │                             └──────────it meets it again─────────┤
      └──────a model answers any run of the account, or a user resets────┘

A limit applies to the account, a model or a family of models. It holds until the stated time, but
for six hours at most: then one run probes while the others wait for its result. A limit without a
certain time holds for minutes, and longer each time that a run meets it again. The first answer of
a model lifts any limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from ...core.moment import Due, Lease
from ...core.redaction import presentable
from ...stores.state_machine import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.moment import Moment

__all__ = (
    "ACCOUNT",
    "LONGEST_BELIEF",
    "OWN",
    "THIS",
    "AccountLimit",
    "AccountState",
    "ForgetLimits",
    "LimitMet",
    "ModelAnswered",
    "OverrideLimit",
    "ProbeReleased",
    "StartAllowed",
    "StartDelayed",
    "StartRequest",
    "covers",
    "ordered_for_all",
    "plain_model",
)

# Longest time that one statement holds: a program's output is untrusted.
LONGEST_BELIEF = 21_600.0

# How long a limit without a certain time holds: the first time, and at most.
_FIRST_DOUBT, _LONGEST_DOUBT = 60.0, 1800.0

# A probing run that was not refused within this time counts as admitted.
_PROBE = 120.0

# How often runs that wait for a probe ask again, in seconds.
_GLANCE = 15.0

# Answers of attempts this recent may have been sent before the limit was met.
_ON_ITS_WAY = 120.0

# How long an expired limit is kept: a run that meets it again waits longer.
_MEMORY = 3600.0

# Most limits kept per account; the oldest are dropped first.
_MOST = 16


#: `AccountLimit.model` for "this model", and for the default model of a run that named none.
THIS, OWN = "this-model", "default-model"

_LONGEST = 80
_TOKENS = re.compile(r"[a-z]+|\d+")
_SUFFIX = re.compile(r"(?:\[[^\]]*\]|:.*)$")
# Ignored when another word follows.
_MAKERS = frozenset({"claude", "anthropic"})
# Whose versions share one limit: Anthropic's "Opus 4.x" is the traffic of 4, 4.1, 4.5 and so on.
_TIERS = frozenset({"opus", "sonnet", "haiku"})
# Words of small models: OpenAI and Google give each a limit of its own.
_SMALL = frozenset({"lite", "mini", "nano", "spark"})
# Digits in a part of a version; longer numbers are dates and numbers of snapshots.
_LONGEST_VERSION = 2


@dataclass(frozen=True, slots=True)
class AccountLimit:
    """One limit of an account.

    Args:
        model: The model or the family that it is about; empty for the whole account.
        is_default: Whether it also holds for runs that name no model.
        look: When a run may probe.
        resets_at: The stated reset time, in epoch seconds; None if uncertain.
        because: What the program said.
        run: The run that met it.
        program: Its program.
        met_at: When, in epoch seconds.
        doubts: How often in a row it was met without a certain time.
        probe: The run that probes whether the limit still holds.
    """

    model: str
    is_default: bool
    look: Due
    resets_at: float | None
    because: str
    run: str
    program: str
    met_at: float
    doubts: int = 0
    probe: Lease | None = None

    def holds(self, model: str) -> bool:
        """Whether it applies to a run of `model`; empty stands for the program's default."""
        if not self.model:
            return True
        return covers(self.model, model) if model else self.is_default


@dataclass(frozen=True, slots=True)
class AccountState:
    """Limits and user's order of one account, or the order for a whole program or provider.

    Args:
        label: Where its credential was found, for people.
        programs: The programs that have met a limit of it.
        limits: Its limits.
        hand: ``blocked`` or ``allowed`` by a user; empty if not.
        hand_until: When the order expires; None for never.
        because: Why, in their words.
    """

    label: str = ""
    programs: tuple[str, ...] = ()
    limits: tuple[AccountLimit, ...] = ()
    hand: str = ""
    hand_until: Due | None = None
    because: str = ""

    def ordered(self, moment: Moment) -> str:
        """The user's order, if it has not expired."""
        is_over = self.hand_until is not None and self.hand_until.left(moment) <= 0
        return "" if is_over else self.hand

    def blocked(self, moment: Moment) -> StartDelayed | None:
        """How long a user's order blocks runs; None if it does not."""
        if self.ordered(moment) != "blocked":
            return None
        left = float("inf") if self.hand_until is None else self.hand_until.left(moment)
        return StartDelayed(left, self.because)


def _keep(state: AccountState, moment: Moment) -> float:
    if state.hand and state.hand_until is None:
        return float("inf")
    left = 0.0 if state.hand_until is None else state.hand_until.left(moment)
    for each in state.limits:
        # A missing limit counts as lifted, so keep it until its stated time.
        resets_in = 0.0 if each.resets_at is None else each.resets_at - moment.wall
        left = max(left, resets_in, each.look.left(moment))
    return _MEMORY + left


ACCOUNT: Machine[AccountState] = Machine(name="account", start=AccountState(), keep=_keep)


class _Operation:
    __slots__ = ()
    machine = ACCOUNT


@dataclass(frozen=True, slots=True)
class StartAllowed:
    """The run may start."""


@dataclass(frozen=True, slots=True)
class StartDelayed:
    """The run has to wait for so many seconds, infinitely many if a user blocked the account.

    `resets_at` is the stated reset time of the limit, in epoch seconds.
    """

    delay: float
    because: str
    resets_at: float | None = None


def ordered_for_all(
    states: Sequence[AccountState], moment: Moment
) -> StartAllowed | StartDelayed | None:
    """The strictest of the users' orders, the longest first; None if there is none."""
    blocked = [held for each in states if (held := each.blocked(moment)) is not None]
    if blocked:
        return max(blocked, key=lambda each: each.delay)
    is_allowed = any(each.ordered(moment) == "allowed" for each in states)
    return StartAllowed() if is_allowed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest(_Operation):
    """Asks whether a run may start. Changes the state only if the run becomes the probe."""

    run: str
    model: str

    def __call__(
        self, state: AccountState, moment: Moment
    ) -> tuple[AccountState, StartAllowed | StartDelayed]:
        if (held := state.blocked(moment)) is not None:
            return state, held
        mine = [each for each in state.limits if each.holds(self.model)]
        if not mine or state.ordered(moment) == "allowed":
            return state, StartAllowed()
        closed = max(mine, key=lambda each: each.look.left(moment))
        if (left := closed.look.left(moment)) > 0:
            return state, StartDelayed(left, _met(closed), closed.resets_at)
        return self._tried(state, mine, moment)

    def _tried(
        self, state: AccountState, mine: list[AccountLimit], moment: Moment
    ) -> tuple[AccountState, StartAllowed | StartDelayed]:
        """The answer once a probe is due: one run starts, the others wait."""
        trying = [each.probe for each in mine if each.probe is not None]
        if not trying:
            probe = Lease(self.run, moment.lease(_PROBE))
            return _with_probe(state, mine, probe), StartAllowed()
        if any(each.id == self.run for each in trying):
            return state, StartAllowed()
        if (left := max(each.due.left(moment) for each in trying)) > 0:
            because = f"run {trying[0].id} checks whether the limit has been lifted"
            return state, StartDelayed(min(left, _GLANCE), because)
        # The probe was not refused in time: it was admitted.
        return _without(state, mine), StartAllowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitMet(_Operation):
    """A run has met a limit; `model`, `is_default`, `because` and others as of `AccountLimit`.

    Args:
        label: The account's.
        seconds: Seconds until the reset; 0 if unknown.
        is_sure: Whether that time is unambiguous.
    """

    run: str
    program: str
    label: str
    model: str
    is_default: bool
    seconds: float
    is_sure: bool
    because: str

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, float]:
        """Returns for how many seconds no run probes."""
        before = next((each for each in state.limits if each.model == self.model), None)
        others = [each for each in state.limits if each is not before]
        is_sure = self.is_sure and self.seconds > 0
        left = 0.0 if before is None else before.look.left(moment)
        # Runs that meet the limit at the same time count as one.
        doubts = 0 if before is None else before.doubts
        doubts = 0 if is_sure else doubts if left > 0 else doubts + 1
        wait = self._belief(doubts, is_sure=is_sure)
        resets_at = moment.wall + self.seconds if is_sure else None
        if before is not None and left > wait:
            wait, resets_at = left, before.resets_at
        limit = AccountLimit(
            self.model,
            self.is_default or (before is not None and before.is_default),
            moment.stated(wait),
            resets_at,
            self.because,
            self.run,
            self.program,
            moment.wall,
            doubts,
        )
        limits = (*others[-_MOST + 1 :], limit)
        programs = tuple(sorted({*state.programs, self.program}))
        return replace(state, label=self.label, programs=programs, limits=limits), wait

    def _belief(self, doubts: int, *, is_sure: bool) -> float:
        if is_sure:
            return min(self.seconds, LONGEST_BELIEF)
        doubt = min(_FIRST_DOUBT * 2.0 ** min(max(doubts - 1, 0), 10), _LONGEST_DOUBT)
        return min(doubt, self.seconds) if self.seconds > 0 else doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered(_Operation):
    """A model has answered a run: lifts the limits that apply to it.

    `age` is the seconds since its attempt started.
    """

    model: str
    age: float

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, bool]:
        """Returns whether this lifted a limit."""
        began = moment.wall - self.age
        refuted = [
            each
            for each in state.limits
            if each.holds(self.model)
            and (each.met_at <= began or moment.wall - each.met_at >= _ON_ITS_WAY)
        ]
        return (_without(state, refuted), True) if refuted else (state, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReleased(_Operation):
    """The probing run ended without showing whether the limit holds."""

    run: str

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, None]:  # noqa: ARG002 -- one signature for all operations
        mine = [each for each in state.limits if each.probe and each.probe.id == self.run]
        return (_with_probe(state, mine, None) if mine else state), None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideLimit(_Operation):
    """A user blocks or allows an account, regardless of its limits.

    For so many seconds, or until the user revokes it; `because` is shown by blocked runs.
    """

    move: Literal["blocked", "allowed"]
    because: str = ""
    seconds: float | None = None

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, None]:
        until = None if self.seconds is None else moment.stated(self.seconds)
        return replace(state, hand=self.move, hand_until=until, because=self.because), None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetLimits(_Operation):
    """A user deletes the stored limits of an account.

    Only limits about the model or family, if it is named; else everything, orders included.
    """

    model: str | None = None

    def __call__(
        self, state: AccountState, moment: Moment
    ) -> tuple[AccountState, tuple[AccountState, ...]]:
        """Returns what was deleted."""
        if self.model is None:
            is_known = bool(state.limits or state.ordered(moment))
            return ACCOUNT.start, (state,) if is_known else ()
        gone = [each for each in state.limits if each.model and covers(each.model, self.model)]
        if not gone:
            return state, ()
        return _without(state, gone), (replace(state, limits=tuple(gone), hand=""),)


def _met(limit: AccountLimit) -> str:
    about = f" for {limit.model}" if limit.model else ""
    return f"run {limit.run} met a limit{about}: {limit.because}"


def _without(state: AccountState, gone: list[AccountLimit]) -> AccountState:
    left = tuple([each for each in state.limits if each not in gone])
    if not left and not state.hand:
        return ACCOUNT.start
    return replace(state, limits=left)


def _with_probe(state: AccountState, some: list[AccountLimit], probe: Lease | None) -> AccountState:
    limits = [replace(each, probe=probe) if each in some else each for each in state.limits]
    return replace(state, limits=tuple(limits))


def plain_model(name: str) -> str:
    """`name` in the form in which models are compared, shown and typed; empty for the default."""
    plain = "-".join(presentable(name.rpartition("/")[2], _LONGEST).lower().split())
    return "" if plain in {"default", "inherit", "auto"} else plain


def covers(limited: str, model: str) -> bool:
    """Whether a limit on `limited` holds for a run of `model`.

    As vendors count: a word without a version is a family ("opus", "pro", "flash"), but its small
    models, which have "mini" or "lite" in their names, are counted apart. Anthropic also counts the
    versions of a tier together: "opus 4" covers "claude-opus-4-6". Any other name is one model:
    "gpt-5" covers its snapshots ("gpt-5-2025-08-07"), but neither "gpt-5-mini" nor "gpt-5.1".
    Where one of the two names no version, the versions agree.
    """
    words, version = _parts(limited)
    mine, my_version = _parts(model)
    if not words or not mine:
        return limited == model
    is_agreed = version == my_version or not (version and my_version)
    if words == mine and is_agreed:
        return True
    if len(words) > 1 or (version and words[0] not in _TIERS):
        return False
    if any(one != other for one, other in zip(version, my_version, strict=False)):
        return False
    is_small = not _SMALL.isdisjoint(mine)
    return not is_small and any(word.startswith(words[0]) for word in mine)


def _parts(name: str) -> tuple[list[str], list[str]]:
    """The words and the version of a model's name, without the date or number of a snapshot."""
    bare = _SUFFIX.sub("", name.lower().rpartition("/")[2])
    tokens = _TOKENS.findall(bare)
    words = [each for each in tokens if each.isalpha()]
    named = [each for each in words if each not in _MAKERS]
    numbers = (each for each in tokens if each.isdigit())
    return named or words, list(takewhile(lambda each: len(each) <= _LONGEST_VERSION, numbers))

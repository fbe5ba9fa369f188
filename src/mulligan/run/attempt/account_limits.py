"""Limits of one account, as its runs know them: a state machine. Pure.

    free ──a run meets a limit──▶ limited ──the time to look again──▶ one run tries
      ▲                             ▲                                    │
      │                             └──────────it meets it again─────────┤
      └──────a model answers any run of the account, or a user resets────┘

A limit is about the account, or about a model or a family of models. It is believed until the time
that was stated, but never longer than six hours: then one run tries while the others wait for what
becomes of it. A limit whose time is not sure is believed for minutes, and longer each time
that it is met again. Whatever closed it, the first answer of a model opens it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ...core.moment import Due, Lease
from ...stores.machine import Machine

if TYPE_CHECKING:
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
    "plain_model",
)

# What a program prints is data that anybody may have written: one statement is believed so long.
LONGEST_BELIEF = 21_600.0

# How long a limit without a sure time is believed: at first, and at most.
_FIRST_DOUBT, _LONGEST_DOUBT = 60.0, 1800.0

# A run that tries is refused within this time, or it is let in.
_PROBE = 120.0

# How often those look that wait for the run that tries.
_GLANCE = 15.0

# An answer may have been on its way when the limit was met.
_ON_ITS_WAY = 120.0

# How long a limit is remembered whose time has passed: a run that meets it again waits longer.
_MEMORY = 3600.0

# More limits than an account has; the oldest go first.
_MOST = 16


#: What a limit is about that says "this model", and that model where the run did not name it.
THIS, OWN = "this-model", "default-model"

_LONGEST = 80
_TOKENS = re.compile(r"[a-z]+|\d+")
_SUFFIX = re.compile(r"(?:\[[^\]]*\]|:.*)$")
# The maker's name says nothing where another word follows.
_MAKERS = frozenset({"claude", "anthropic"})


@dataclass(frozen=True, slots=True)
class AccountLimit:
    """One limit of an account.

    Args:
        model: The model or the family that it is about; empty for the whole account.
        is_default: Whether it also holds for runs that name no model.
        look: Until when no run tries.
        resets_at: When it was said to be over, in epoch seconds; None if that is not sure.
        because: What the program said.
        run: The run that met it.
        program: Its program.
        met_at: When, in epoch seconds.
        doubts: How often in a row it was met without a sure time.
        probe: The run that tries whether it is over.
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
        """Whether it is about a run of `model`; an empty one is the program's default."""
        if not self.model:
            return True
        return covers(self.model, model) if model else self.is_default


@dataclass(frozen=True, slots=True)
class AccountState:
    """What is known of one account, or ordered for everything of one name.

    Args:
        label: Where its credential was found, for people.
        programs: The programs that have met a limit of it.
        limits: Its limits.
        hand: ``blocked`` or ``allowed`` by a user; empty if not.
        hand_until: Until when; None for until it is taken back.
        because: Why, in their words.
    """

    label: str = ""
    programs: tuple[str, ...] = ()
    limits: tuple[AccountLimit, ...] = ()
    hand: str = ""
    hand_until: Due | None = None
    because: str = ""

    def ordered(self, moment: Moment) -> str:
        """What a user has ordered, if that still holds."""
        is_over = self.hand_until is not None and self.hand_until.left(moment) <= 0
        return "" if is_over else self.hand

    def blocked(self, moment: Moment) -> StartDelayed | None:
        """How long runs are held because a user ordered it; None if they are not."""
        if self.ordered(moment) != "blocked":
            return None
        left = float("inf") if self.hand_until is None else self.hand_until.left(moment)
        return StartDelayed(left, self.because)


def _keep(state: AccountState, moment: Moment) -> float:
    if state.hand and state.hand_until is None:
        return float("inf")
    dues = [each.look.left(moment) for each in state.limits]
    dues += [] if state.hand_until is None else [state.hand_until.left(moment)]
    # A limit that is not known any more was lifted: so it is known until its stated time.
    dues += [each.resets_at - moment.wall for each in state.limits if each.resets_at is not None]
    return _MEMORY + max(dues, default=0.0)


ACCOUNT: Machine[AccountState] = Machine(name="account", start=AccountState(), keep=_keep)


class _Operation:
    __slots__ = ()

    @property
    def machine(self) -> Machine[AccountState]:
        return ACCOUNT


@dataclass(frozen=True, slots=True)
class StartAllowed:
    """The run may start."""


@dataclass(frozen=True, slots=True)
class StartDelayed:
    """The run has to wait.

    Args:
        delay: Seconds until it may ask again; infinite if a user blocked the account.
        because: Why, in a clause.
        resets_at: When the limit was said to be over, in epoch seconds.
    """

    delay: float
    because: str
    resets_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest(_Operation):
    """May a run start? Changes nothing unless the run is the one that tries.

    Args:
        run: The run.
        model: Its model; empty for its program's default.
    """

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
        """The answer where the time to look again has come: one run tries."""
        trying = [each.probe for each in mine if each.probe is not None]
        if not trying:
            probe = Lease(self.run, moment.lease(_PROBE))
            return _with_probe(state, mine, probe), StartAllowed()
        if any(each.id == self.run for each in trying):
            return state, StartAllowed()
        if (left := max(each.due.left(moment) for each in trying)) > 0:
            because = f"run {trying[0].id} checks whether the limit has been lifted"
            return state, StartDelayed(min(left, _GLANCE), because)
        # It was not refused in all that time.
        return _without(state, mine), StartAllowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitMet(_Operation):
    """A run has met a limit.

    Args:
        run: The run.
        program: Its program.
        label: The account's.
        model: What the limit is about: a model, a family; empty for the whole account.
        is_default: Whether the run named no model, so that others that name none meet it, too.
        seconds: Until it is over; 0 if unknown.
        is_sure: Whether that time can be meant in one way only.
        because: What the program said.
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
        """The result is for how many seconds no run tries."""
        before = next((each for each in state.limits if each.model == self.model), None)
        others = [each for each in state.limits if each is not before]
        is_sure = self.is_sure and self.seconds > 0
        left = 0.0 if before is None else before.look.left(moment)
        # Several runs that meet it together have met it once.
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
    """A model has answered a run: no limit that is about it holds any more.

    Args:
        model: The run's model.
        age: For how many seconds its attempt has been under way.
    """

    model: str
    age: float

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, bool]:
        """The result is whether this lifted a limit."""
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
    """A run that tried has ended, and it is still unknown whether the limit holds.

    Args:
        run: The run.
    """

    run: str

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, None]:  # noqa: ARG002 -- one signature for all operations
        mine = [each for each in state.limits if each.probe and each.probe.id == self.run]
        return (_with_probe(state, mine, None) if mine else state), None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideLimit(_Operation):
    """A user blocks or allows an account, whatever is known of its limits.

    Args:
        move: What they order.
        because: Why; told to runs that are held.
        seconds: For how long; None for until it is taken back.
    """

    move: Literal["blocked", "allowed"]
    because: str = ""
    seconds: float | None = None

    def __call__(self, state: AccountState, moment: Moment) -> tuple[AccountState, None]:
        until = None if self.seconds is None else moment.stated(self.seconds)
        return replace(state, hand=self.move, hand_until=until, because=self.because), None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetLimits(_Operation):
    """A user resets what is known of an account.

    Args:
        model: Only limits about this model or family; None for everything, orders included.
    """

    model: str | None = None

    def __call__(
        self, state: AccountState, moment: Moment
    ) -> tuple[AccountState, tuple[AccountState, ...]]:
        """The result is what was known and is forgotten, if there was anything."""
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
    from ...core.redaction import presentable

    plain = "-".join(presentable(name.rpartition("/")[2], _LONGEST).lower().split())
    return "" if plain in {"default", "inherit", "auto"} else plain


def covers(limited: str, model: str) -> bool:
    """Whether a limit on `limited` holds for a run of `model`.

    One word is a family: "opus" covers every Opus, "opus 4" those of version 4. A longer name is
    one model: "gemini-2.5-flash" does not cover "gemini-2.5-flash-lite". Where one of the two names
    no version, or a shorter one, the versions agree.
    """
    words, version = _parts(limited)
    mine, my_version = _parts(model)
    if not words or not mine:
        return limited == model
    if any(one != other for one, other in zip(version, my_version, strict=False)):
        return False
    if len(words) == 1:
        return any(word.startswith(words[0]) for word in mine)
    return words == mine


def _parts(name: str) -> tuple[list[str], list[str]]:
    """The words and the numbers of a model's name."""
    bare = _SUFFIX.sub("", name.lower().rpartition("/")[2])
    tokens = _TOKENS.findall(bare)
    words = [each for each in tokens if each.isalpha()]
    named = [each for each in words if each not in _MAKERS]
    return named or words, [each for each in tokens if each.isdigit()]

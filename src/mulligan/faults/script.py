"""Fault scripts: rules, steps and their parser.

A script is a list of steps, and **the first step that applies answers**. A step applies while
its count is not used up (``429x2``), while the time is in its window (``0-15s:529``), when its
roll of the dice says so (``503:0.3``), and until the reset it stated has come (``plan(5h)``).

    429x2,529,ok          two 429, one 529, then ok for good
    503:0.3,ok            three in ten are 503
    0-15s:overloaded,ok   overloaded for fifteen seconds
    plan(15s)             refused until fifteen seconds have passed, then ok

A step with neither count, window, chance nor reset answers once; the last one answers for ever.
After the last step comes ok. Rules for some requests only are separated by semicolons:

    POST /invoices -> lost,ok; @team-a -> plan(1h); @* -> 429,ok; 503:0.1,ok

Quotes keep commas and parentheses together: ``503(message="busy, (really)")``.

``/v1/*`` is a path, ``@team-a`` a client, and ``@*`` gives each client a copy of its own. Time
runs from the first request that a rule sees, so that a program may take its time to start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from hashlib import blake2b
from math import ceil, inf
from typing import TYPE_CHECKING

from ..core.duration import seconds
from ..errors import SettingError
from .fault_names import OK, Fault, parse_fault
from .grammar import pieces
from .limits import LimitCheck

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("RuleState", "Script", "ScriptRule", "ScriptStep", "Turn", "roll", "take")

# A plan's limit that does not say how long: five hours, the shortest window vendors sell.
_PLAN = 5 * 3600.0

_STEP = re.compile(
    r"(?:(?P<since>[0-9][0-9.a-z]*)?-(?P<until>[0-9][0-9.a-z]*)?:)?"
    r"(?P<name>[0-9]{3}|[a-z][a-z-]*?)"
    r"(?:\((?P<arguments>.*)\))?"
    r"(?:x(?P<count>[0-9]{1,9}))?"
    r"(?::(?P<chance>[0-9.]+))?",
    re.DOTALL,
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """One step: what is answered, and when it applies."""

    fault: Fault
    count: int | None = None  # how many requests it answers; None for all of them
    since: float = 0.0  # in seconds, counted from the rule's first request
    until: float = inf
    chance: float = 1.0  # the probability that it answers a request it could answer

    @property
    def lasts(self) -> float | None:
        """Seconds from its first refusal to the reset that it states; None if it states none."""
        if self.fault.name != "plan":
            return None
        stated = self.fault.seconds("for")
        return _PLAN if stated is None else stated

    def __str__(self) -> str:
        window = count = chance = ""
        if (self.since, self.until) != (0.0, inf):
            end = "" if self.until == inf else _plain(self.until) + "s"
            window = f"{_plain(self.since)}s-{end}:"
        if self.count is not None:
            count = f"x{self.count}"
        if self.chance != 1.0:
            chance = f":{_plain(self.chance)}"
        return f"{window}{self.fault}{count}{chance}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRule:
    """Steps for some requests."""

    steps: tuple[ScriptStep, ...]  # the first that applies answers
    method: str = ""  # `POST`; empty for any
    path: str = ""  # a pattern with `*`; empty for any
    client: str = ""  # a name; empty for any, `*` for each client on its own

    def covers(self, *, method: str, path: str, client: str) -> bool:
        return (
            self.method in {"", method}
            and (not self.path or fnmatchcase(path, self.path))
            and self.client in {"", "*", client}
        )

    def __str__(self) -> str:
        client = f"@{self.client}" if self.client else ""
        selector = " ".join(part for part in (self.method, self.path, client) if part)
        steps = ",".join(map(str, self.steps))
        return f"{selector} -> {steps}" if selector else steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleState:
    """How far a rule has come."""

    used: tuple[int, ...]  # how often each step has answered
    resets: tuple[float | None, ...]  # the instant that each step stated as its reset, once it has
    began_at: float | None = None  # when the first request came; None before it
    asked: int = 0  # how many requests came

    @classmethod
    def of(cls, rule: ScriptRule) -> RuleState:
        return cls(used=(0,) * len(rule.steps), resets=(None,) * len(rule.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one request is answered with."""

    fault: Fault
    reset_at: float | None = None  # the reset to state, in the time of `now`
    lasts: float = 0.0  # length of the window that ends then, in seconds
    admission: LimitCheck | None = None  # what the limits said; None where there are none


def take(
    rule: ScriptRule, state: RuleState, *, now: float, roll: Callable[[int], float]
) -> tuple[Turn, RuleState]:
    """The turn of the next request, and the state after it.

    `roll` gives a number in [0, 1) for the step of that index.
    """
    began_at = now if state.began_at is None else state.began_at
    state = replace(state, began_at=began_at, asked=state.asked + 1)
    for index, step in enumerate(rule.steps):
        reset_at = state.resets[index]
        if (
            (step.count is not None and state.used[index] >= step.count)
            or not step.since <= now - began_at < step.until
            or (reset_at is not None and now >= reset_at)
            or (step.chance < 1.0 and roll(index) >= step.chance)
        ):
            continue
        if reset_at is None and step.lasts is not None:
            # Vendors state resets in whole seconds, so the instant is one.
            reset_at = float(ceil(now + step.lasts))
        used = (*state.used[:index], state.used[index] + 1, *state.used[index + 1 :])
        resets = (*state.resets[:index], reset_at, *state.resets[index + 1 :])
        turn = Turn(fault=step.fault, reset_at=reset_at, lasts=step.lasts or 0.0)
        return turn, replace(state, used=used, resets=resets)
    return Turn(fault=OK), state


def roll(seed: int, *occasion: object) -> float:
    """A number in [0, 1) that depends on the seed and the occasion alone.

    So the order in which clients send does not change their results, as it would with one random
    generator for all.
    """
    digest = blake2b(repr((seed, *occasion)).encode(), digest_size=8).digest()
    # 53 bits are what a float holds; one more could round up to 1.0.
    return (int.from_bytes(digest, "big") >> 11) / 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Rules in order; the first that covers a request decides. None covers it: ok."""

    rules: tuple[ScriptRule, ...]

    @classmethod
    def parse(cls, text: str) -> Script:
        """The script that `text` writes, or a SettingError that shows the step."""
        rules = tuple(_rule(part) for part in pieces(text, ";") if part.strip())
        return cls(rules=rules)

    def find(self, *, method: str, path: str, client: str) -> int | None:
        """The index of the rule that decides."""
        for index, rule in enumerate(self.rules):
            if rule.covers(method=method, path=path, client=client):
                return index
        return None

    def __str__(self) -> str:
        return "; ".join(map(str, self.rules)) or "ok"


def _rule(text: str) -> ScriptRule:
    *selector, steps = pieces(text, "->", 1)
    chosen: dict[str, str] = {}
    for word in " ".join(selector).split():
        if word.upper() in _METHODS:
            kind, value = "method", word.upper()
        elif word.startswith("/"):
            kind, value = "path", word
        elif word.startswith("@") and len(word) > 1:
            kind, value = "client", word[1:]
        else:
            raise SettingError(
                "a rule begins with a method, a /path or a @client; "
                f"got {word!r} in {text.strip()!r}"
            )
        if kind in chosen:
            raise SettingError(f"a rule has one {kind}; got another, {word!r}, in {text.strip()!r}")
        chosen[kind] = value
    written = [piece.strip() for piece in pieces(steps, ",") if piece.strip()]
    if not written:
        raise SettingError(f"a rule needs at least one step, such as ok; got {text.strip()!r}")
    last = len(written) - 1
    return ScriptRule(
        steps=tuple(_step(piece, is_last=index == last) for index, piece in enumerate(written)),
        **chosen,
    )


def _step(text: str, *, is_last: bool) -> ScriptStep:
    found = _STEP.fullmatch(text)
    if found is None:
        raise SettingError(
            f"a step is written like 429, 429x2, 503:0.3, 0-15s:529 or stall(3); got {text!r}"
        )
    pieces(found["arguments"] or "", ",")  # ok(a)(b) matches as well, and is none
    step = ScriptStep(fault=parse_fault(found["name"], found["arguments"]))
    if found["chance"] is not None:
        step = replace(step, chance=_chance(found["chance"], text))
    if found["since"] is not None or found["until"] is not None:
        since, until = _window(found["since"], found["until"], text)
        step = replace(step, since=since, until=until)
    if found["count"] is not None:
        step = replace(step, count=int(found["count"]))
    elif not is_last and step == ScriptStep(fault=step.fault) and step.lasts is None:
        step = replace(step, count=1)
    return step


def _chance(written: str, text: str) -> float:
    try:
        chance = float(written)
    except ValueError:
        chance = -1.0
    if not 0 <= chance <= 1:
        raise SettingError(f"a chance is a number from 0 to 1; got {written!r} in {text!r}")
    return chance


def _window(since: str | None, until: str | None, text: str) -> tuple[float, float]:
    # "5-15m" means minutes on both sides.
    units = [found[0] for text_ in (until, since) if (found := re.search("[a-z]+$", text_ or ""))]
    unit = units[0] if units else "s"

    def read(value: str) -> float:
        return seconds(value if value[-1].isalpha() else value + unit, name=f"the window of {text}")

    begin = 0.0 if since is None else read(since)
    end = inf if until is None else read(until)
    if end <= begin:
        raise SettingError(f"a window ends after it begins, as in 5-15s; got {text!r}")
    return begin, end


def _plain(number: float) -> str:
    """`number` with all its digits and without an exponent, which a step could not be read with."""
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

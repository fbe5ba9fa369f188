"""Limits of runs by the names that users see, for status, reset, block and allow.

anthropic               everything of a provider: all its accounts, all models
claude                  the accounts at which a program has met a limit
anthropic@3f2a          one account, where there are several
anthropic/opus          limits on one model or family
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..core.redaction import clean
from ..run.agents.catalogue import known as programs
from ..run.attempt.account_limits import ACCOUNT, ForgetLimits, OverrideLimit, covers
from ..run.attempt.account_limits_client import PART
from ..stores.state_machine import Key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from ..core.moment import Moment
    from ..core.ports import Store
    from ..run.attempt.account_limits import AccountLimit, AccountState

__all__ = (
    "AccountRow",
    "LimitName",
    "forget",
    "is_runs_name",
    "known_names",
    "matching",
    "order",
    "rows_of",
)

# How much of an account's hash tells it from the others.
_TAG = 4

_PROVIDERS = ("anthropic", "openai", "google", "openrouter", "github", "deepseek", "dashscope")


class AccountRow(NamedTuple):
    """One account of a store, or what is ordered for a name, at the store's time.

    `is_alone` says that no other account of the provider is known there.
    """

    store: Store
    key: Key
    state: AccountState
    moment: Moment
    is_alone: bool

    @property
    def name(self) -> str:
        """What people call it, and what the commands take."""
        tag = "" if self.is_alone or not self.key.scope else f"@{self.key.scope[:_TAG]}"
        return f"{clean(self.key.target, 80)}{tag}"

    @property
    def account(self) -> str:
        """Where its credential was found; that of an order for a name: all of them."""
        return clean(self.state.label, 80) or ("all" if not self.key.scope else "-")

    def name_of(self, limit: AccountLimit) -> str:
        """The name of one of its limits."""
        return f"{self.name}/{clean(limit.model, 80)}" if limit.model else self.name


class LimitName(NamedTuple):
    """A name, taken apart: a provider or program, the beginning of an account's hash, a model."""

    base: str
    tag: str
    model: str | None

    @classmethod
    def of(cls, name: str) -> LimitName:
        """`name` as the table shows it, or less of it."""
        head, slash, model = name.partition("/")
        base, _, tag = head.partition("@")
        return cls(base, tag, model.lower() if slash else None)


def rows_of(stores: Iterable[Store]) -> list[AccountRow]:
    """Every account of which runs know something, and every order, in order."""
    found = []
    for store in stores:
        keys = [key for key in store.state.known(ACCOUNT) if key.part == PART]
        for key in keys:
            state, moment = store.state.peek(key, ACCOUNT)
            if not state.limits and not state.ordered(moment):
                continue  # it is over, or another version wrote it
            others = [each for each in keys if each.target == key.target and each.scope]
            found.append(AccountRow(store, key, state, moment, is_alone=len(others) <= 1))
    return sorted(found, key=lambda row: (row.key.target, row.key.scope))


def matching(rows: Iterable[AccountRow], name: str) -> list[AccountRow]:
    """The rows that `name` means."""
    named = LimitName.of(name)
    return [
        row
        for row in rows
        if named.base in {row.key.target, *row.state.programs}
        and row.key.scope.startswith(named.tag)
        and (named.model is None or _about(row.state, named.model))
    ]


def _about(state: AccountState, model: str) -> list[AccountLimit]:
    return [each for each in state.limits if each.model and covers(each.model, model)]


def forget(row: AccountRow, name: str) -> list[str]:
    """Forget what `name` means of a row; what was forgotten, in lines."""
    gone = row.store.state.transact(row.key, ForgetLimits(model=LimitName.of(name).model))
    said = []
    for state in gone:
        if state.hand:
            said.append(f"{row.name}: runs are no longer {state.hand}")
        said += [
            f"{row.name_of(each)}: forgot the limit that run {clean(each.run, 80)} hit "
            f"({clean(each.because, 120)})"
            for each in state.limits
        ]
    return said


def order(
    stores: Iterable[Store],
    rows: Iterable[AccountRow],
    name: str,
    move: Literal["blocked", "allowed"],
    *,
    because: str,
    seconds: float | None,
) -> list[str]:
    """Block or allow the runs that `name` means; the names for which that was ordered."""
    named, step = LimitName.of(name), OverrideLimit(move=move, because=because, seconds=seconds)
    if named.tag:
        found = [row for row in matching(rows, name) if row.key.scope]
        for row in found:
            row.store.state.transact(row.key, step)
        return sorted({row.name for row in found})
    for store in stores:
        store.state.transact(Key(named.base, PART), step)
    return [named.base]


def is_runs_name(name: str, rows: Iterable[AccountRow]) -> bool:
    """Whether `name` means runs of a program, a provider or an account; not of one model."""
    named = LimitName.of(name)
    if named.model is not None:
        return False
    is_known = named.base in {*programs(), *_PROVIDERS} and not named.tag
    return is_known or bool(matching(rows, name))


def known_names(rows: Iterable[AccountRow]) -> list[str]:
    """The names that are in use, for hints."""
    found = set()
    for row in rows:
        found |= {row.name, *row.state.programs, *(row.name_of(each) for each in row.state.limits)}
    return sorted(found)

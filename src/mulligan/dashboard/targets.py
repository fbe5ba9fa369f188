"""Targets for the page: breaker, gate and tokens of guards, and the limits that runs have hit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.redaction import clean
from ..run.attempt.account_limits import ACCOUNT
from ..run.attempt.account_limits_client import PART
from ..shared.snapshot import snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.ports import Store

__all__ = ("limits_of_runs", "targets_of")


def targets_of(store: Store, now: float) -> list[dict[str, Any]]:
    """The targets that guards share, with absolute times: a page counts down by itself.

    Raises:
        StoreDown: The store cannot be read.
    """
    found = []
    for row in snapshots(store):
        breaker, gate = row["breaker"], row["gate"]
        found.append(
            {
                "target": clean(row["target"], 200),
                "name": row["target"],
                "scope": row["scope"],
                "breaker": breaker["state"],
                "breaker_until": _at(breaker["for"], now),
                "failures": breaker["failures"],
                "gate": gate["state"],
                "gate_until": _at(gate["for"], now),
                "because": clean(breaker["because"] or gate["because"]),
                "limits": [
                    {
                        "dimension": clean(each["dimension"], 40),
                        "remaining": each["remaining"],
                        "limit": each["limit"],
                        "reset_at": _at(each["reset_in"], now),
                    }
                    for each in gate["limits"]
                ],
                "tokens_left": row["tokens"]["left"],
                "tokens_spent": row["tokens"]["spent"],
                "waiting_retries": row["waiting"]["retries"],
                "calls": row["waiting"]["permits"],
            }
        )
    return found


def limits_of_runs(stores: Iterable[Store]) -> list[dict[str, Any]]:
    """The limits that runs of this user have hit, and what was blocked or allowed for them.

    Raises:
        StoreDown: A store cannot be read.
    """
    found = []
    for store in stores:
        for key in store.state.known(ACCOUNT):
            if key.part != PART:
                continue
            state, moment = store.state.peek(key, ACCOUNT)
            if hand := state.ordered(moment):
                due = state.hand_until
                found.append(
                    {
                        "name": key.target,
                        "label": clean(key.target, 100),
                        "hand": hand,
                        "until": None if due is None else moment.wall + due.left(moment),
                        "because": clean(state.because),
                    }
                )
            found += [
                {
                    "name": key.target,
                    "label": clean(f"{key.target}/{each.model}" if each.model else key.target, 100),
                    "hand": "",
                    "account": clean(state.label, 80),
                    "until": max(each.resets_at or 0.0, moment.wall + each.look.left(moment)),
                    "because": clean(each.because),
                    "program": clean(each.program, 40),
                    "run": each.run,
                }
                for each in state.limits
            ]
    return sorted(found, key=lambda each: (each["label"], each["hand"]))


def _at(seconds: float | None, now: float) -> float | None:
    return None if seconds is None else round(now + seconds, 1)

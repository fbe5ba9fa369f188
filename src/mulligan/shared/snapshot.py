"""The shared state of targets as plain data, for commands, metrics and the dashboard."""

from __future__ import annotations

from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from ..calls.clock import world
from ..core.duration import duration_text
from ..core.moment import Moment
from ..core.redaction import clean
from ..core.shared_settings import Tokens
from ..stores.memory import Memory
from ..stores.state_machine import Key
from .breaker import BREAKER
from .gate.gate import GATE, advanced
from .retry_tokens import TOKENS
from .targets import targets_of

if TYPE_CHECKING:
    from ..core.ports import Store
    from .breaker import Circuit
    from .gate.gate import GateState
    from .retry_tokens import TokenBucket

__all__ = ("known", "snapshot", "snapshots", "whole_seconds")


def known(store: Store) -> list[tuple[str, str]]:
    """Every target and scope of which the store knows anything, in order."""
    state = store.state
    keys = (*state.known(BREAKER), *state.known(GATE), *state.known(TOKENS))
    return sorted({(key.target, key.scope) for key in keys})


def snapshots(store: Store) -> list[dict[str, Any]]:
    """Every target that the store knows; for memory, every target of this process's guards."""
    found = [snapshot(store, *each) for each in known(store)]
    if not isinstance(store, Memory):
        return found
    # Guards that share nothing keep their state themselves; the memory has what was overridden.
    names = {(row["target"], row["scope"]) for row in found}
    clock = world().clock
    for target in targets_of(store).known():
        if (target.target, target.scope) in names:
            continue
        views = {name: part.view for name, part in list(target.made.items())}
        state: Any = {
            name: views[name].state if name in views else machine.start
            for name, machine in (("breaker", BREAKER), ("gate", GATE), ("tokens", TOKENS))
        }
        moment = Moment(clock.now(), clock.wall())
        found.append(_row(target.target, store.scoped(target.scope), moment, **state))
    return found


def snapshot(store: Store, target: str, scope: str) -> dict[str, Any]:
    """Everything about one target, for machines; texts for people stand in it, too."""
    circuit, moment = store.state.peek(Key(target, "breaker", scope), BREAKER)
    flow, _ = store.state.peek(Key(target, "gate", scope), GATE)
    bucket, _ = store.state.peek(Key(target, "tokens", scope), TOKENS)
    return _row(target, scope, moment, breaker=circuit, gate=flow, tokens=bucket)


def _row(
    target: str,
    scope: str,
    moment: Moment,
    *,
    breaker: Circuit,
    gate: GateState,
    tokens: TokenBucket,
) -> dict[str, Any]:
    flow, bucket = advanced(gate, moment), tokens
    retries = sum(each.due.left(moment) > 0 for each in bucket.reserved)
    return {
        "target": target,
        "scope": scope,
        "breaker": _breaker(breaker.untouched(moment), moment),
        "gate": _gate(flow, moment),
        "tokens": _tokens(bucket),
        "waiting": {"retries": retries, "permits": sum(each.count for each in flow.permits)},
    }


def _breaker(state: Circuit, moment: Moment) -> dict[str, Any]:
    for_ = None
    if state.hand:
        name = state.hand
        for_ = None if state.hand_until is None else state.hand_until.left(moment)
        end = "" if for_ is None else f" for {whole_seconds(for_)}"
        text = f"{name} manually{end}"
    elif state.until is None:
        name = "closed"
        text = f"closed, {state.streak} failures in a row" if state.streak else "closed"
    elif state.retry_in(moment) > 0:
        for_ = state.retry_in(moment)
        name, text = "open", f"open for {whole_seconds(for_)}"
    else:
        name, text = "half open", "half open"
    return {
        "state": name,
        "text": text,
        "for": for_,
        "failures": state.streak,
        "because": state.because,
    }


def _gate(state: GateState, moment: Moment) -> dict[str, Any]:
    limits = [
        {
            "dimension": each.dimension,
            "remaining": each.remaining,
            "limit": each.limit,
            "reset_in": None if each.reset is None else each.reset.left(moment),
        }
        for each in state.beliefs
    ]
    for_ = None
    if state.shut is not None:
        for_ = state.shut.left(moment)
        name, text = "shut", f"shut for {whole_seconds(for_)}"
    elif state.opening is not None:
        name, text = "opening", f"opening, {state.opening.allowed} at a time"
    elif limits:
        name, text = "limited", "; ".join(map(_limit, limits))
    else:
        name, text = "free", "free"
    return {"state": name, "text": text, "for": for_, "because": state.because, "limits": limits}


def whole_seconds(seconds: float) -> str:
    """Rounded up, so that a caller that waits so long is not too early."""
    return duration_text(ceil(seconds) if isfinite(seconds) else seconds)


def _limit(limit: dict[str, Any]) -> str:
    total = "" if limit["limit"] is None else f" of {limit['limit']:g}"
    reset = "" if limit["reset_in"] is None else f", reset in {whole_seconds(limit['reset_in'])}"
    return f"{int(limit['remaining'])}{total} {clean(limit['dimension'], 40)}{reset}"


def _tokens(state: TokenBucket) -> dict[str, Any]:
    text = f"{state.spent:.0f} spent" if state.spent else "full"
    return {"spent": state.spent, "left": state.left(Tokens()), "text": text}

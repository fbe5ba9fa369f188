"""Chooses the step of a script for a request.

Limits come first: a request that they refuse does not reach the script, and uses none of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from .fault_names import Fault
from .limits import ClientLimits, ClientUsage, LimitCheck, admit
from .randomness import roll
from .script import RuleState, Script, ScriptRule, Turn, take

__all__ = ("LIMIT", "OK", "Decided", "StepChooser")

OK = Fault(name="ok")
# The outcome of the limits; not on the menu, because scripts cannot name it.
LIMIT = Fault(name="limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What one request gets.

    Args:
        turn: The step.
        admission: What the limits said; None where there are none.
    """

    turn: Turn
    admission: LimitCheck | None = None

    @property
    def fault(self) -> Fault:
        return self.turn.fault


class StepChooser:
    """Keeps the state of the script and the usage of each client.

    Args:
        script: What is done with which request.
        limits: What each client may use.
        seed: The same seed, the same luck.
    """

    def __init__(self, script: Script, limits: ClientLimits, seed: int) -> None:
        self.script, self.limits, self._seed = script, limits, seed
        self._accounts: dict[str, ClientUsage] = {}
        self._states: dict[tuple[int, str], RuleState] = {}

    def rule_for(self, method: str, path: str, client: str) -> ScriptRule | None:
        """The rule that decides, if there is one."""
        index = self.script.find(method=method, path=path, client=client)
        return None if index is None else self.script.rules[index]

    def decide(self, *, method: str, path: str, client: str, tokens: int, now: float) -> Decided:
        """The step for this request; what it uses is taken from its client's account."""
        admission = None
        if self.limits.requests is not None or self.limits.tokens is not None:
            account = self._accounts.get(client, ClientUsage())
            admission, self._accounts[client] = admit(self.limits, account, tokens=tokens, now=now)
            if not admission.is_admitted:
                return Decided(turn=Turn(fault=LIMIT), admission=admission)
        index = self.script.find(method=method, path=path, client=client)
        if index is None:
            return Decided(turn=Turn(fault=OK), admission=admission)
        rule = self.script.rules[index]
        whose = client if rule.client == "*" else ""
        state = self._states.get((index, whose)) or RuleState.of(rule)
        turn, self._states[index, whose] = take(
            rule,
            state,
            now=now,
            roll=lambda step: roll(self._seed, str(rule), whose, state.asked, step),
        )
        return Decided(turn=turn, admission=admission)

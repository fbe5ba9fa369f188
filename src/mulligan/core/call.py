"""The state of one call: attempts, counters and bounds.

    Trying ──answered──▶ Done
       └──failed──▶ Judged ──RetryAfter──▶ Waiting ──▶ Trying
                      ├──Verify──▶ applied: Done   not applied: judged again
                      ├──Park────▶ Ended, with the time to come back
                      └──GiveUp──▶ Ended

A call knows nothing of clocks and dice. Drivers tell it what happened and when; `decide` reads
it and answers. The first attempt may go unrecorded until it fails: that is what makes a call
that succeeds cost nothing.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from .decide import decide
from .decisions import GiveUp, RetryAfter
from .failure import Kind, Reach

if TYPE_CHECKING:
    from .decisions import Decision, Ending
    from .failure import Effects, Failure
    from .policy import Policy
    from .story import Story

__all__ = ("Call",)


class Call:
    """One operation with all its attempts.

    Args:
        policy: The rules.
        effects: What happens if it is made twice.
        name: The function, for people.
        target: The dependency, or empty.
        can_verify: Whether `verify` can find out if an attempt was applied.
        deadline_at: When everything must be over, on the same clock.
    """

    # Read before it is first written: a call that fails once never touches most of these.
    attempt = 1
    first_failed_at: float | None = None
    fastest = inf  # the shortest attempt so far, where measured
    spent = 0.0  # waits, and attempts after the first
    waited = 0.0
    allowance = inf  # what the task still allows; the session keeps it current
    is_down = False  # whether the target is down, and the call waits for it to come back
    has_gate = False  # whether a gate paces the calls to the target
    believes = inf  # the longest wait for a limit that the gate believes, in seconds
    progress_at = -inf  # when the target last answered any caller, as far as is known
    doubt = ""  # why the function may have been applied, though the request that failed was not
    silent_limits = 0  # limits without a time: the provider breaks its contract (R-C18)

    def __init__(
        self,
        policy: Policy,
        effects: Effects,
        *,
        name: str = "",
        target: str = "",
        can_verify: bool = False,
        deadline_at: float = inf,
    ) -> None:
        self.policy, self.effects = policy, effects
        self.name, self.target, self.can_verify = name, target, can_verify
        self.deadline_at = deadline_at
        self.counts: dict[Kind, int] = {}  # failures by kind
        self.unhinted: dict[Kind, int] = {}  # … since the last hint
        self.tries: list[tuple[Failure, Decision, float | None]] = []

    def failed(
        self, failure: Failure, *, now: float, wall: float, roll: float, took: float | None = None
    ) -> Decision:
        """Record a failed attempt and say what happens next.

        Args:
            failure: What went wrong.
            now: The time on the clock of `deadline_at`.
            wall: The time in epoch seconds.
            roll: One roll of the dice.
            took: How long the attempt took, if measured.
        """
        kind, counts, unhinted = failure.kind, self.counts, self.unhinted
        counts[kind] = counts.get(kind, 0) + 1
        if failure.hint is None:
            unhinted[kind] = unhinted.get(kind, 0) + 1
            if kind.is_limit:
                self.silent_limits += 1
        else:
            unhinted[kind] = 0
        if self.first_failed_at is None:
            self.first_failed_at = now
        if took is not None:
            self.fastest = min(self.fastest, took)
            if self.attempt > 1:
                self.spent += took
        decision = decide(self, failure, now=now, wall=wall, roll=roll)
        self.tries.append((failure, decision, took))
        return decision

    def not_applied(self, failure: Failure, *, now: float, wall: float, roll: float) -> Decision:
        """Judge the last failure again, now that it is known not to have been applied."""
        known = replace(failure, reach=Reach.NEVER_SENT)
        decision = decide(self, known, now=now, wall=wall, roll=roll)
        self.tries[-1] = (known, decision, self.tries[-1][2])
        return decision

    def overruled(self, decision: GiveUp) -> None:
        """Replace the last decision by one that the world forced upon it."""
        failure, _, took = self.tries[-1]
        self.tries[-1] = (failure, decision, took)

    @property
    def label(self) -> str:
        """The target, or else the function: what a refusal names."""
        return self.target or self.name or "the call"

    @property
    def timeouts(self) -> int:
        return self.counts.get(Kind.TIMEOUT, 0)

    @property
    def remark(self) -> str:
        """What to report to the provider, or nothing."""
        if self.silent_limits < 2:
            return ""
        return f"{self.target or 'the provider'} sent {self.silent_limits} limits without a time"

    def story(
        self, ending: Ending, because: str, *, retry_at: float | None, delivered: int
    ) -> Story:
        """All of it, in strings and numbers."""
        from .story import Story, Try  # only calls that end badly have one

        tries = []
        for number, (failure, decision, took) in enumerate(self.tries, start=1):
            tries.append(
                Try(
                    attempt=number,
                    kind=str(failure.kind),
                    message=failure.message,
                    status=failure.status,
                    code=failure.code,
                    decision=type(decision).__name__,
                    delay=decision.delay if isinstance(decision, RetryAfter) else None,
                    because=decision.because,
                    took=took,
                    target=self.target,
                    reach=str(failure.reach),
                )
            )
        return Story(
            target=self.target,
            name=self.name,
            ending=str(ending),
            because=because,
            attempts=self.attempt,
            waited=self.waited,
            tries=tuple(tries),
            retry_at=retry_at,
            delivered=delivered,
            remark=self.remark,
        )

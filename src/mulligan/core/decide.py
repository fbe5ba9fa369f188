"""One call: its attempts, counters and bounds, and the decision after each of its failures.

    Trying ──answered──▶ Done
       └──failed──▶ Judged ──RetryAfter──▶ Waiting ──▶ Trying
                      ├──Verify──▶ applied: Done   not applied: judged again
                      ├──Park────▶ Ended, with the time to come back
                      └──GiveUp──▶ Ended

A call has no clock and no random generator: the session tells it what happened and when, and
`decide` reads it. The first attempt may go unrecorded until it fails, so that a call that succeeds
costs nothing.

The questions are asked in a fixed order, and the first one that ends the call gives the reason:

    1. Did the server state whether it can pass?          explicit statements win
    2. Does the policy have a rule for this kind?        unknown is raised, never retried
    3. Could a repeat do it twice?                       unsafe and maybe applied: verify
    4. Are attempts of this kind left?                   a counter a kind
    5. How long: the server's time, or the backoff?      never sooner than the hint
    6. Does the wait fit deadline, patience and budget?
    7. Has the condition changed?                        the validator, where a rule asks for it
    8. Which band: wait here, park, or give up?

Cancellation never comes here: it is not an `Exception`, and the loop catches nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from .decisions import Decision, Ending, GiveUp, Park, RetryAfter, Verify
from .duration import duration_text
from .failure import Effects, Failure, Kind, Reach

if TYPE_CHECKING:
    from .hint import Hint
    from .policy import Policy, Rule
    from .story import Story

__all__ = ("Call", "decide")

# Looking up a member of an enum takes 80 ns in Python 3.11, on the way of every failure.
_MAYBE_APPLIED, _UNSAFE = Reach.MAYBE_APPLIED, Effects.UNSAFE
# The largest share of the time until the deadline that a wait of full jitter takes; and the seconds
# below which it is not shortened: a call that is about to fail must not become a storm.
_QUARTER, _SECOND = 0.25, 1.0


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


def decide(call: Call, failure: Failure, *, now: float, wall: float, roll: float) -> Decision:
    """What happens after `failure`, the latest of `call`. Pure: it changes nothing."""
    kind, policy, hint = failure.kind, call.policy, failure.hint
    rule = policy.rules.get(kind)
    if rule is None or failure.is_retriable is not None or policy.statuses is not None:
        chosen = _rule(call, failure, rule)
        if isinstance(chosen, GiveUp):
            return _with_time(chosen, failure, wall)
        rule = chosen
    if call.effects is _UNSAFE and failure.reach is _MAYBE_APPLIED:
        return _not_repeated(call, failure)
    count = call.counts[kind]
    if rule.attempts is not None and count >= rule.attempts and not call.is_down:
        return _with_time(_exhausted(failure, count, rule.attempts), failure, wall)
    if hint is not None and kind.is_limit and call.believes < min(hint.floor, policy.in_place):
        hint = None  # it waits at the gate, which believes no time that is so far off
    is_queued = hint is None and (call.is_down or (rule.is_paced and call.has_gate))
    delay = 0.0 if is_queued else _delay(call, failure, rule, hint, now, roll)
    stop = _bounds(call, delay, now)
    if policy.most_attempts is not None and call.attempt >= policy.most_attempts:
        stop = _exhausted(failure, call.attempt, policy.most_attempts)
    if stop is None and rule.check != "never":
        stop = _condition(call, failure, rule)
    if stop is not None:
        return _with_time(stop, failure, wall)
    if delay <= policy.in_place:
        return RetryAfter(delay, "" if hint is None else _source(hint, delay), is_queued)
    return _too_long(call, failure, delay, wall)


def _delay(  # noqa: PLR0917 -- the arguments of one formula
    call: Call, failure: Failure, rule: Rule, hint: Hint | None, now: float, roll: float
) -> float:
    """Question 5: how long to wait."""
    kind, count = failure.kind, call.counts[failure.kind]
    if hint is not None:
        # Exact; but a server that says "in a millisecond" again and again means a hot loop.
        is_tiny = hint.floor < 1.0 and count > 1
        if rule.hint == "replace" and not is_tiny:
            return hint.floor
        return max(hint.floor, rule.backoff.delay(count, roll))
    # A hint restarts the series (gRPC A6), except in ``at_least``: its schedule goes by attempts.
    series = count if rule.hint == "at_least" else call.unhinted[kind]
    delay = (rule.missing_hint or rule.backoff).delay(series, roll)
    if call.deadline_at < inf and rule.backoff.jitter == "full":
        # A random wait that grows without regard to the deadline would use up most of it.
        delay = min(delay, roll * max(_QUARTER * (call.deadline_at - now), _SECOND))
    return delay


def _rule(call: Call, failure: Failure, rule: Rule | None) -> Rule | GiveUp:
    """Questions 1 and 2: the rule that answers this failure, or why there is none."""
    policy, kind = call.policy, failure.kind
    if failure.is_retriable is False:
        why = f": {failure.because}" if failure.because else ""
        return GiveUp(Ending.FINAL, f"{_short(failure)} is not retryable{why}")
    if failure.is_retriable:
        if failure.status == 422:
            return GiveUp(
                Ending.FINAL, f"{_short(failure)} can succeed only once the call is corrected"
            )
        if rule is None or rule.check == "required":
            # One more try is for conditions that are not known to pass.
            rule = policy.rules.get(Kind.SERVER, rule)
    elif kind is Kind.UNKNOWN and rule is None:
        return GiveUp(Ending.UNKNOWN, "unknown failures are not retried")
    elif failure.status is not None and not kind.is_limit and not policy.retries(failure.status):
        return GiveUp(
            Ending.FINAL, f"policy {policy.name!r} does not retry status {failure.status}"
        )
    if rule is None:
        return GiveUp(
            Ending.FINAL, f"{_short(failure)} cannot be fixed by waiting (policy {policy.name!r})"
        )
    return rule


def _exhausted(failure: Failure, count: int, of: int) -> GiveUp:
    """Question 4."""
    tried = "the only attempt" if of == 1 else f"attempt {count} of {of}"
    return GiveUp(Ending.EXHAUSTED, f"{tried} failed with {_short(failure)}")


def _not_repeated(call: Call, failure: Failure) -> Verify | GiveUp:
    """Question 3."""
    # A request is named by its method and host, a function by its name.
    name = call.name if " " in call.name else f"{call.name}()" if call.name else "the call"
    if call.can_verify:
        return Verify(f"{name} may have been applied ({_short(failure)})")
    return GiveUp(
        Ending.MAYBE_APPLIED,
        f"not retried: {name} may have been applied{f' ({call.doubt})' if call.doubt else ''}; "
        f'if repeating is harmless, set effects="read" or effects="idempotent"',
    )


def _bounds(call: Call, delay: float, now: float) -> GiveUp | None:
    """Question 6, for waits that are slept through; a longer one ends the call anyway."""
    policy = call.policy
    if call.deadline_at < inf:
        late = _too_late(call, delay, call.deadline_at - now)
        if late is not None:
            return late
    if delay > policy.in_place:
        return None
    allowed = call.allowance
    if policy.budget is not None:
        allowed = min(allowed, policy.budget - call.spent)
    if delay > allowed:
        return GiveUp(
            Ending.BUDGET,
            f"waiting {duration_text(delay)} would pass the retry budget, "
            f"{duration_text(max(allowed, 0))} of it left",
        )
    first = call.first_failed_at
    if first is None:
        return None
    since = max(first, call.progress_at)
    waited = now - since + delay
    # The bound is never below either; most waits are far below, and need not compute it.
    least = policy.in_place if policy.patience is None else policy.patience
    if waited > least and waited > policy.bound:
        of = "the first failure" if since == first else "the target's last answer"
        return GiveUp(
            Ending.DEADLINE,
            f"waiting {duration_text(delay)} would end more than {duration_text(policy.bound)} "
            f"after {of}",
        )
    return None


def _too_late(call: Call, delay: float, left: float) -> GiveUp | None:
    if left <= 0:
        return GiveUp(Ending.DEADLINE, f"the deadline passed during attempt {call.attempt}")
    if delay >= left:
        return GiveUp(
            Ending.DEADLINE,
            f"waiting {duration_text(delay)} would pass the deadline, {duration_text(left)} away",
        )
    if call.fastest < inf and delay + call.fastest > left:
        return GiveUp(
            Ending.DEADLINE,
            f"{duration_text(left - delay)} would be left for an attempt, "
            f"and none has taken less than {duration_text(call.fastest)}",
        )
    return None


def _condition(call: Call, failure: Failure, rule: Rule) -> GiveUp | None:
    """Question 7. A server that says it can pass has answered it."""
    # RFC 8470: "too early" has passed as soon as it has been said. One more try (E-G4).
    if failure.is_retriable or failure.status == 425:
        return None
    validator = call.policy.validator
    if validator is None:
        if rule.check == "if_given":
            return None
        return GiveUp(
            Ending.FINAL,
            f"{_short(failure)} can succeed only after a change, and no validator reports one",
        )
    try:
        if validator(failure):
            return None
        answer = "the validator reports no change"
    except Exception as error:  # noqa: BLE001 -- a broken validator must not hide the failure
        answer = f"the validator raised {type(error).__name__}"
    return GiveUp(Ending.FINAL, f"{_short(failure)}: {answer}")


def _too_long(call: Call, failure: Failure, delay: float, wall: float) -> Park | GiveUp:
    """Question 8, for waits that are not slept through."""
    policy = call.policy
    why = RetryAfter(delay, _source(failure.hint, delay)).because
    if delay <= policy.horizon:
        return Park(
            wall + delay,
            f"{why}: longer than the {duration_text(policy.in_place)} slept in place",
        )
    return GiveUp(
        Ending.HORIZON,
        f"{why}: beyond the horizon of {duration_text(policy.horizon)}",
        wall + delay,
    )


def _source(hint: Hint | None, delay: float) -> str:
    """Where `delay` comes from: the place in which the server stated it; empty for the backoff."""
    if hint is None or delay > hint.floor:
        return ""
    return hint.source or "the server"


def _with_time(decision: GiveUp, failure: Failure, wall: float) -> GiveUp:
    """`decision`, with the time the server named, so that giving up still reports it."""
    if failure.hint is None or decision.retry_at is not None:
        return decision
    return GiveUp(decision.ending, decision.because, wall + failure.hint.floor)


def _short(failure: Failure) -> str:
    return str(failure.kind) if failure.status is None else f"{failure.status} ({failure.kind})"

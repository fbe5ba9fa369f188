"""What follows from the end of an attempt.

Pure: what the program printed has been read, what time it is and how the dice fell comes in as
arguments. The order of questions:

    1. Did we end it, and why?                   an interrupted run is paused, not failed
    2. Did it start at all?                      a program that is not there will not be there soon
    3. Did it fail?                              its report first, its words second, its exit last
    4. May it be started again?                  resumed where it can be, else only where harmless
    5. What does the policy say about the kind?  the one judgement of the core
    6. Could the stated time be over already?    one try before tomorrow is believed
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ..core.backoff import Exponential
from ..core.call import Call
from ..core.decision import Ending, GiveUp, RetryAfter, Verify
from ..core.duration import duration_text
from ..core.failure import Effects, Failure, Kind, Reach
from ..core.hint import Confidence
from ..core.policy import Policy
from ..core.presets import preset
from .advice import HARMLESS, advice_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..classify.agent_output import Outcome
    from ..classify.reset_time import ResetTime
    from .reading import Finished
    from .steps import Ended, How, Then

__all__ = ("UNASKED", "Terms", "Verdict", "judge", "longest_wait", "run_policy", "trouble")

EX_TEMPFAIL = 75
_INTERRUPTED, _PIPE, _NOT_FOUND = 130, 141, 127

# A run that fails this often without a model having answered in between goes nowhere.
_MOST_IN_A_ROW = 50

# Runs that wait for the same reset come back spread over this part of the wait, or this long.
_SPREAD, _LONGEST_SPREAD = 0.05, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the run was told, and what its program can do.

    Args:
        policy: The rules.
        program: The command's name, for people.
        can_resume: Whether there is a session to go on with.
        may_restart: Whether the user allows a start anew after a crash.
        is_exit_trusted: Whether exit code 0 outweighs words.
        deadline_at: When the run must be over, in epoch seconds; None for never.
        is_end_due: Whether output without a report of its end was cut off.
        is_known: Whether it is an agent program that we know.
        now: Epoch seconds.
    """

    policy: Policy
    program: str
    can_resume: bool
    may_restart: bool = False
    is_exit_trusted: bool = True
    deadline_at: float | None = None
    is_end_due: bool = False
    is_known: bool = False
    now: float = 0.0


class Verdict(NamedTuple):
    """What follows.

    Args:
        then: done, again, stop or pause.
        failure: What went wrong; None if nothing did.
        because: Why this follows, in one sentence.
        how: How the next attempt is made.
        until: When it is due, or when a stopped run could go on; epoch seconds.
        exit: The exit code of the run, if this is its end.
        advice: What the user can do about it.
        is_probe: Whether the next attempt only finds out if the limit is over.
    """

    then: Then
    failure: Failure | None = None
    because: str = ""
    how: How = "resume"
    until: float | None = None
    exit: int = 0
    advice: str = ""
    is_probe: bool = False


def run_policy(name: str = "default") -> Policy:
    """The preset for whole programs.

    `default` is made for calls. A program has tried several times by itself before it fails, it is
    started anew for every attempt, and nobody waits at a screen: so the waits are longer, and
    patience lasts as long as the horizon.
    """
    policy = preset(name)
    if policy.name != "default":
        return policy
    rules = {
        kind: replace(rule, backoff=_BACKOFFS.get(kind, rule.backoff))
        for kind, rule in policy.rules.items()
    }
    for kind in (Kind.OVERLOADED, Kind.NETWORK, Kind.SERVER):
        rules[kind] = replace(rules[kind], attempts=_FAULTS)
    return replace(policy, rules=rules)


def longest_wait(policy: Policy) -> tuple[float, str]:
    """How long an agent may wait at once, in seconds, with the setting that bounds it."""
    if all(rule.attempts == 1 for rule in policy.rules.values()):
        return 0.0, "attempts"
    bounds = [(policy.horizon, "horizon"), (policy.deadline, "deadline")]
    if policy.horizon <= policy.in_place:  # else a longer wait is parked, whatever they say
        bounds += [(policy.budget, "budget"), (policy.patience, "patience")]
    return min((bound, name) for bound, name in bounds if bound is not None)


# Four to eight minutes in all: a provider that is down for longer is rare, and a stream that breaks
# for ever costs its tokens each time. A timeout keeps its five attempts: each took its silence.
_FAULTS = 8
_PASSING = Exponential(first=4, cap=300, jitter="equal")
_BACKOFFS = {
    Kind.OVERLOADED: _PASSING,
    Kind.NETWORK: _PASSING,
    Kind.SERVER: _PASSING,
    Kind.TIMEOUT: _PASSING,
    # Most windows of this kind last a minute, and the program has waited for a part of it.
    Kind.RATE_LIMIT: Exponential(first=30, cap=1800, jitter="equal"),
    # A plan's window lasts minutes to days. Gemini does not pass on when it ends.
    Kind.QUOTA: Exponential(first=60, cap=1800, jitter="equal"),
}


def judge(
    finished: Finished,
    outcome: Outcome | None,
    terms: Terms,
    before: Iterable[Ended],
    *,
    now: float,
    roll: float,
) -> Verdict:
    """What follows from the end of an attempt.

    Args:
        finished: How it ended.
        outcome: What its output says; None if nobody could read it.
        terms: What the run was told.
        before: The attempts before this one, in order.
        now: Epoch seconds.
        roll: One roll of the dice.
    """
    if outcome is not None and outcome.is_done and (finished.stopped or not finished.code):
        # It reported its success. That it hung or died afterwards is no reason to do it again.
        return Verdict("done", None, "the program reported its success")
    if finished.stopped and finished.stopped not in {"idle", "timeout", "futile"}:
        return _ended_by_us(finished, terms)
    if finished.error:
        advice = _MISSING if finished.code == _NOT_FOUND else _UNSTARTED
        missing = Failure(kind=Kind.CLIENT, message=finished.error, because=finished.error)
        return Verdict("stop", missing, finished.error, exit=_exit(finished), advice=advice)
    failure = trouble(finished, outcome, terms)
    if failure is None:
        return Verdict("done", None, "the program ended well", exit=finished.code or 0)
    is_said = outcome is not None and failure is outcome.failure
    reset = outcome.reset if outcome is not None and is_said else None
    return _answer(failure, reset, finished, terms, tuple(before), now=now, roll=roll)


# What a machine that shuts down says, or a service that is restarted: nobody wants the run to end.
UNASKED = frozenset({"terminate", "hangup"})


def _ended_by_us(finished: Finished, terms: Terms) -> Verdict:
    """What follows where somebody wanted it to end."""
    if finished.stopped == "input":
        return Verdict("stop", None, finished.error or "its input could not be kept", exit=1)
    if finished.stopped in UNASKED and (terms.can_resume or terms.may_restart):
        because = "its supervisor was told to end: it goes on with the next"
        return Verdict("again", None, because, until=terms.now, exit=_INTERRUPTED)
    because, code = {
        "pipe": ("nobody reads its output any more", _PIPE),
        "fenced": ("another process has taken it over", EX_TEMPFAIL),
    }.get(finished.stopped, ("interrupted", _INTERRUPTED))
    return Verdict("pause", None, because, exit=code)


_MISSING = "check the spelling, and the PATH that it is looked for on"
_UNSTARTED = "mend that, then take the run up again"


def trouble(finished: Finished, outcome: Outcome | None, terms: Terms) -> Failure | None:
    """What went wrong in the attempt, or nothing."""
    said = None if outcome is None else outcome.failure
    is_report = outcome is not None and outcome.is_structured
    if finished.stopped:
        if finished.stopped == "idle" and is_report and said is not None and said.kind.is_limit:
            # It sleeps until the limit is over, and does not say how long: Codex does.
            return replace(said, because=f"{said.because}; then silence, in which it was ended")
        return _ended_early(finished)
    if finished.code == 0 and said is None and terms.is_end_due:
        cut = "it ended without its last word: what it printed was cut off"
        return Failure(kind=Kind.NETWORK, message=cut, reach=Reach.MAYBE_APPLIED, because=cut)
    if finished.code == 0 and not is_report and terms.is_exit_trusted:
        # Words alone prove nothing against a program that says it did well: they could be quoted.
        return None
    died_by = _death(finished, terms)
    if died_by is not None and (said is None or said.kind is Kind.UNKNOWN):
        crash = f"it died by {_signal_name(died_by)}, which nobody here sent"
        return Failure(kind=Kind.SERVER, message=crash, reach=Reach.MAYBE_APPLIED, because=crash)
    return said


# How a launcher that stands between tells of its program's death: 128 and the signal.
_DEATHS = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL})
_LAUNCHED_DEATHS = {128 + number: int(number) for number in (*_DEATHS, signal.SIGSEGV)}


def _death(finished: Finished, terms: Terms) -> int | None:
    """The signal that the program died by, or nothing."""
    if finished.signal is None and terms.is_known:
        return _LAUNCHED_DEATHS.get(finished.code or 0)
    return finished.signal


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the two that have names
        return f"signal {number}"


def _ended_early(finished: Finished) -> Failure:
    """What went wrong where we ended it."""
    kind, words = {
        "idle": (Kind.TIMEOUT, f"it was silent for {duration_text(finished.silent or 0)}"),
        "timeout": (Kind.TIMEOUT, f"it was still running after {duration_text(finished.took)}"),
        "futile": (Kind.NETWORK, "it got answers that were cut off, time and again"),
    }[finished.stopped]
    message = f"{words}, and was ended"
    return Failure(kind=kind, message=message, reach=Reach.MAYBE_APPLIED, because=message)


def _answer(
    failure: Failure,
    reset: ResetTime | None,
    finished: Finished,
    terms: Terms,
    before: tuple[Ended, ...],
    *,
    now: float,
    roll: float,
) -> Verdict:
    code = _exit(finished)
    how: How = "resume" if terms.can_resume else "restart"
    if how == "restart" and not terms.may_restart and _is_cut_off(finished):
        because = f"{failure.message or failure.kind}: starting it anew could do its work twice"
        return Verdict("stop", failure, because, exit=code, advice=HARMLESS)
    if doubt := _doubt(failure, reset, before):
        return Verdict("again", failure, doubt, how, now + 1 + roll, is_probe=True)
    call = _call(terms, before, now)
    decision = call.failed(failure, now=now, wall=now, roll=roll)
    assert not isinstance(decision, Verify)  # noqa: S101 -- effects are not unsafe here: see `_call`
    if isinstance(decision, GiveUp):
        is_later = decision.ending is Ending.HORIZON
        return Verdict(
            "stop",
            failure,
            decision.because,
            until=decision.retry_at if is_later else None,
            exit=EX_TEMPFAIL if is_later else code,
            advice=advice_for(failure, terms.program),
        )
    row = sum(call.counts.values())
    if row >= _MOST_IN_A_ROW:
        because = f"{row} attempts in a row failed without a model having answered"
        return Verdict("stop", failure, because, exit=code)
    until = now + decision.delay if isinstance(decision, RetryAfter) else decision.until
    if failure.hint is not None:
        until += roll * min(_LONGEST_SPREAD, _SPREAD * (until - now))
    return Verdict("again", failure, decision.because, how, until)


def _doubt(failure: Failure, reset: ResetTime | None, before: tuple[Ended, ...]) -> str:
    """Why a limit could be over already; empty if it is not, or somebody has tried."""
    if not failure.kind.is_limit or (before and before[-1].is_probe):
        return ""
    if failure.hint is not None and failure.hint.confidence is Confidence.LOW:
        return f"{failure.hint.source} could be over already: one try before it is believed"
    if failure.hint is None and reset is not None:
        return f"{reset.source} is over: one try before it is asked after more rarely"
    return ""


def _is_cut_off(finished: Finished) -> bool:
    """Whether a start anew could do something twice.

    Wrapping a command permits starting it again after a limit, an overload or a network failure
    that it reported. A crash, or a program that we had to end, has done nobody knows what; unless
    it tells each step and was silent from its start: opencode is, until a model answers.
    """
    if finished.stopped == "idle" and finished.is_mute:
        return False
    return finished.signal is not None or bool(finished.stopped)


def _exit(finished: Finished) -> int:
    """The exit code that tells of a failure: the program's own, wherever that is one.

    How it answers our own signal says nothing, and 130 would say that somebody interrupted us.
    """
    if finished.stopped:
        return 1
    if finished.signal is not None:
        return 128 + finished.signal
    return finished.code or 1


def _call(terms: Terms, before: tuple[Ended, ...], now: float) -> Call:
    """The memory of this run as the core's judgement wants it.

    An attempt in which a model answered got through: what is counted per kind, and patience, begin
    anew behind it. So does patience behind a wait that the server asked for. Attempts in total are
    never forgotten.
    """
    policy = terms.policy
    if policy.patience is None:
        policy = replace(policy, patience=max(policy.horizon, policy.bound))
    call = Call(policy, Effects.IDEMPOTENT, name=terms.program)
    if terms.deadline_at is not None:
        call.deadline_at = terms.deadline_at
    for ended in before:
        if ended.is_work:
            call.counts.clear()
            call.unhinted.clear()
            call.first_failed_at = None
        if not ended.kind or ended.then != "again":
            continue
        kind = Kind(ended.kind)
        call.counts[kind] = call.counts.get(kind, 0) + 1
        call.unhinted[kind] = 0 if ended.reset_at is not None else call.unhinted.get(kind, 0) + 1
        if ended.reset_at is not None:
            call.first_failed_at = None
        elif call.first_failed_at is None:
            call.first_failed_at = ended.at
    if before:
        call.spent = max(0.0, now - before[0].at)  # waits, and attempts after the first
    # An entry that only says why no attempt was made carries the number of the one before.
    call.attempt = len({each.attempt for each in before if each.attempt}) + 1
    return call

"""Recovery: decides what follows from the end of an attempt.

Pure: the output that was read, the time and the random roll are arguments. The order of questions:

    1. Did it report its success?                what it said before any signal of ours counts
    2. Did we end it, and why?                   an interrupted run is paused, not failed
    3. Did it start at all?                      a program that is not there will not be there soon;
                                                 what this machine lacks for a moment, it may have
    4. Did it fail?                              its report first, its words second, its exit last
    5. Is it in doubt?                           exit code 0, and its output lacks its end
    6. May it be started again?                  resumed where it can be, else only where harmless
    7. Is it a limit that may be none, or over?  one probe before its time is believed
    8. What does the policy say about the kind?  the one judgement of the core

A kind that was guessed from the last words of a failed program (`AttemptEnd.is_guess`) concerns
this run alone: a second failure in the same words shows that the program failed again, and not that
its account is limited.

While the program runs, `better_ended` decides at each retry of its own whether to stop it.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...core.decide import Call
from ...core.decisions import Ending, GiveUp, RetryAfter, Verify
from ...core.duration import duration_text
from ...core.failure import Effects, Failure, Kind, Reach
from ...core.hint import Confidence, Hint, Precision
from ...core.policy import Policy
from ..journal.entries import INTERRUPTED, UNASKED, AttemptEnd

if TYPE_CHECKING:
    from ...classify.output.reader import Outcome
    from ...classify.times.server_formats import ResetTime
    from ..journal.entries import Then

__all__ = (
    "AGAIN",
    "HARMLESS",
    "UNSURE",
    "RecoveryTerms",
    "better_ended",
    "judge",
    "judge_torn",
    "trouble",
    "without_session",
)

EX_TEMPFAIL = 75
_INTERRUPTED, _PIPE, _NOT_FOUND = 130, 141, 127

_LEFT = ", and says that work is left: it ended early because a limit is near"

# Failures in a row, without an answer of a model, after which the run gives up.
_MOST_IN_A_ROW = 50

# Runs that wait for the same reset resume spread over this fraction of the wait, at most this long.
_SPREAD, _LONGEST_SPREAD = 0.05, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryTerms:
    """The rules for a run, and what its program can do.

    Args:
        policy: The rules.
        program: The command's name, for people.
        can_resume: Whether there is a session to resume.
        may_restart: Whether the user allows a restart after a crash.
        is_exit_trusted: Whether exit code 0 outranks text that looks like a failure.
        deadline_at: The run's deadline, in epoch seconds; None for none.
        is_known: Whether it is an agent program that we know.
        now: Epoch seconds.
        before: The attempts before the one that is judged, in order.
        roll: One roll of the dice.
    """

    policy: Policy
    program: str
    can_resume: bool
    may_restart: bool = False
    is_exit_trusted: bool = True
    deadline_at: float | None = None
    is_known: bool = False
    now: float = 0.0
    before: tuple[AttemptEnd, ...] = ()
    roll: float = 0.0


# The end of an attempt with the decision on it, and the failure; None if there was none.
Judged: TypeAlias = tuple[AttemptEnd, "Failure | None"]


def _followed_by(
    end: AttemptEnd, then: Then, because: str, failure: Failure | None = None, **more: Any
) -> Judged:
    """The end of the attempt, with the decision filled in."""
    if failure is not None:
        reset_at = None if failure.hint is None else end.at + failure.hint.delay
        more |= {"kind": str(failure.kind), "status": failure.status, "reset_at": reset_at}
    return end._replace(then=then, because=because, **more), failure


# No command in these: the summary of a run names it with its id, and `mulligan resume` without an
# id resumes the newest run of the folder, which may be another one.
HARMLESS = "if restarting it is harmless, resume it with --restart"

UNSURE = (
    "look at what it did; if restarting it is harmless, resume it with --restart; "
    "a script under the program's name that prints nothing is run with --agent generic"
)

AGAIN = ", then resume the run"

_ADVICE = {
    Kind.AUTH: f"log in with {{program}} or fix its key{AGAIN}",
    Kind.BILLING: f"add credit or change the plan{AGAIN}",
    Kind.CONTEXT_LENGTH: "restart with a shorter prompt, or in smaller steps",
    Kind.CONTENT_POLICY: "change the prompt: the provider refuses to answer this one",
    Kind.CLIENT: "fix the command or its settings: the same request would fail again",
    Kind.UNKNOWN: "read its log; mulligan classify shows how its output is interpreted",
}


def advice_for(failure: Failure, program: str) -> str:
    """What the user can do about `failure`; empty if the run only has to wait."""
    return _ADVICE.get(failure.kind, "").format(program=program)


def judge(end: AttemptEnd, outcome: Outcome | None, terms: RecoveryTerms) -> Judged:
    """Decide what follows from the end of an attempt.

    `outcome` is what its output said before any signal of ours; None if it was not read.
    """
    judged, failure = _judge(end, outcome, terms)
    if failure is None:
        return judged, None
    if outcome is not None and outcome.failure is failure:
        judged = judged._replace(
            message=outcome.message,
            reading=f"{outcome.because} ({outcome.source})",
            is_guess=_is_guess(outcome),
        )
        return judged, failure
    return judged._replace(message=failure.message, reading=failure.because or ""), failure


def _is_guess(outcome: Outcome) -> bool:
    return outcome.confidence is Confidence.LOW


def _judge(end: AttemptEnd, outcome: Outcome | None, terms: RecoveryTerms) -> Judged:
    if outcome is not None and outcome.is_done and (end.stopped or not end.code):
        # It reported success; if it hung or died afterwards, its work is not repeated.
        because = "the program reported its success" + (_LEFT if outcome.is_work_left else "")
        return _followed_by(end, "done", because)
    if end.stopped and end.stopped not in _FOR_ITS_OWN_SAKE:
        return _ended_by_us(end, terms)
    if end.error:
        return _not_started(end, terms)
    failure = trouble(end, outcome, terms)
    if failure is None and end.is_unreported:
        return _in_doubt(end, terms)
    if failure is None:
        is_left = outcome is not None and outcome.is_work_left
        because = "the program succeeded" + (_LEFT if is_left else "")
        return _followed_by(end, "done", because, exit=end.code or 0)
    return _failed(failure, outcome, end, terms)


def _failed(
    failure: Failure, outcome: Outcome | None, end: AttemptEnd, terms: RecoveryTerms
) -> Judged:
    """Decide what follows from a failure, which `outcome` stated unless it is our own finding."""
    reset = None
    if outcome is not None and outcome.failure is failure:
        if _is_guess(outcome):
            return _guessed(failure, end, terms)
        reset = outcome.reset
    return _answer(failure, end, terms, probe=_probe_of_time(failure, reset, terms))


def judge_torn(end: AttemptEnd, outcome: Outcome, terms: RecoveryTerms) -> Judged:
    """Decide what follows from an attempt that is `begun` in the journal and whose supervisor died.

    It counts as started even without a log: the disk may have been full. A success or a limit in
    its log counts. Otherwise it is unknown how far it came, so its session is resumed, or the run
    stops unless the user allowed a restart.
    """
    died = "its supervisor died"
    if outcome.is_done:
        return _followed_by(end, "done", "its log shows that it succeeded")
    failure = outcome.failure
    if failure is not None and outcome.is_structured and failure.kind.is_limit:
        as_if = end._replace(code=1, stopped="")
        judged, failure = judge(as_if, outcome, terms)
        return judged._replace(code=end.code, stopped=end.stopped), failure
    if terms.can_resume or terms.may_restart:
        how = "its session is resumed" if terms.can_resume else "it is restarted"
        return _followed_by(end, "again", f"{died}; {how}", until=terms.now, message=died)
    because = f"{died}, and restarting it could repeat its work"
    return _followed_by(
        end, "stop", because, exit=1, advice=HARMLESS, message=died, ending=Ending.MAYBE_APPLIED
    )


def without_session(end: AttemptEnd, before: tuple[AttemptEnd, ...]) -> AttemptEnd:
    """Decide what follows if the program does not know the session that it was to resume.

    The program was killed before it saved the session, or the session was deleted.
    """
    message = "the program does not know its session"
    was_lost = bool(before) and before[-1].is_lost
    if was_lost or any(each.is_work for each in before):
        return end._replace(
            message=message,
            is_lost=True,
            then="stop",
            exit=end.code or 1,
            because="its session is gone, and restarting it would repeat its work",
            ending=Ending.MAYBE_APPLIED,
        )
    because = "no session was saved: it restarts"
    return end._replace(message=message, is_lost=True, then="again", until=end.at, because=because)


# Reasons for which the supervisor stops a program; all other reasons are requests.
_FOR_ITS_OWN_SAKE = frozenset({"idle", "timeout", "futile", "announced", "final"})

# Failures that neither waiting nor retrying fixes.
_FINAL = {Kind.AUTH, Kind.BILLING, Kind.CONTEXT_LENGTH, Kind.CONTENT_POLICY, Kind.CLIENT}

# Refusals before the program is stopped, if not two: a key may be renewed meanwhile, credit is not.
_FINAL_REFUSALS = {Kind.BILLING: 1}


def better_ended(
    outcome: Outcome, terms: RecoveryTerms, *, quiet: float, row: int, is_mute: bool
) -> Literal["", "announced", "final"]:
    """Why to stop a program that retries by itself; empty to let it retry.

    `outcome` is the reading of its output as if it had exited now, `quiet` the silence that it
    announced, `row` how often it retried since a model answered.
    """
    failure, policy = outcome.failure, terms.policy
    kind = Kind.UNKNOWN if failure is None else failure.kind
    if kind in _FINAL and kind not in policy.rules and row >= _FINAL_REFUSALS.get(kind, 2):
        return "final"
    # A program that can be neither resumed nor restarted is left sleeping: stopping it loses its
    # work.
    can_go_on = terms.can_resume or terms.may_restart or is_mute
    return "announced" if quiet > policy.in_place and can_go_on else ""


def _ended_by_us(end: AttemptEnd, terms: RecoveryTerms) -> Judged:
    """Decide what follows if the stop was requested."""
    if end.stopped == "input":
        because = end.error or "its input could not be kept"
        return _followed_by(end, "stop", because, exit=1, ending=Ending.FINAL)
    if end.stopped in UNASKED and (terms.can_resume or terms.may_restart):
        because = "its supervisor was stopped; the next one continues the run"
        return _followed_by(end, "again", because, until=terms.now, exit=EX_TEMPFAIL)
    because, code = {
        "pipe": ("its output is no longer read", _PIPE),
        "fenced": ("another process has taken it over", EX_TEMPFAIL),
        "terminate": ("ended by SIGTERM", 128 + signal.SIGTERM),
        "hangup": ("ended by SIGHUP", 128 + signal.SIGHUP),
    }.get(end.stopped, (INTERRUPTED, _INTERRUPTED))
    return _followed_by(end, "pause", because, exit=code)


def _not_started(end: AttemptEnd, terms: RecoveryTerms) -> Judged:
    """Decide what follows if the program could not be started, or not be watched to its end."""
    because = end.error
    if end.is_unstarted:
        lacking = Failure(
            kind=Kind.OVERLOADED,
            message=because,
            reach=Reach.NEVER_SENT,
            because="nothing was started",
        )
        return _answer(lacking, end, terms)
    advice = _MISSING if end.code == _NOT_FOUND else _UNSTARTED
    missing = Failure(kind=Kind.CLIENT, message=because, because=because)
    return _followed_by(
        end, "stop", because, missing, exit=_exit(end), advice=advice, ending=Ending.FINAL
    )


_MISSING = "check the spelling, and the PATH that it is looked for on"
_UNSTARTED = "fix that, then resume the run"


def trouble(end: AttemptEnd, outcome: Outcome | None, terms: RecoveryTerms) -> Failure | None:
    """What went wrong in the attempt, or nothing."""
    said = None if outcome is None else outcome.failure
    is_report = outcome is not None and outcome.is_structured
    if end.stopped:
        is_sure = outcome is not None and not _is_guess(outcome)
        return _ended_early(end, said, is_report=is_report and is_sure)
    if end.code == 0 and not is_report and terms.is_exit_trusted:
        # Text alone does not outrank exit code 0: the program may be quoting it. It counts if an
        # agent has no answer, or its output lacks its end.
        is_bare = end.is_unreported or (terms.is_known and not end.has_answer)
        return said if is_bare else None
    died_by = _death(end, terms)
    if died_by is not None and (said is None or said.kind is Kind.UNKNOWN):
        crash = f"it died by {_signal_name(died_by)}, which mulligan did not send"
        return Failure(kind=Kind.SERVER, message=crash, reach=Reach.MAYBE_APPLIED, because=crash)
    return said


# Exit codes of a launcher whose program was killed: 128 + the signal.
_DEATHS = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL})
_LAUNCHED_DEATHS = {128 + number: int(number) for number in (*_DEATHS, signal.SIGSEGV)}


def _death(end: AttemptEnd, terms: RecoveryTerms) -> int | None:
    """The signal that the program died by, or nothing."""
    if end.signal is None and terms.is_known:
        return _LAUNCHED_DEATHS.get(end.code or 0)
    return end.signal


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the two that have names
        return f"signal {number}"


def _ended_early(end: AttemptEnd, said: Failure | None, *, is_report: bool) -> Failure:
    """The failure of an attempt that we stopped."""
    if end.stopped == "announced":
        return _announced(said, end)
    if end.stopped == "final" and said is not None:
        return said
    if end.stopped == "idle" and is_report and said is not None and said.kind.is_limit:
        # It slept until the reset without announcing it, as Codex does.
        return replace(said, because=f"{said.because}; then it was idle, and was stopped")
    kind, words = {
        "idle": (Kind.TIMEOUT, f"it was idle for {duration_text(end.silent or 0)}"),
        "timeout": (Kind.TIMEOUT, f"it was still running after {duration_text(end.took)}"),
        "futile": (Kind.NETWORK, "it kept getting answers that were cut off"),
        "final": (Kind.UNKNOWN, "it kept repeating a request that cannot succeed"),
    }[end.stopped]
    message = f"{words}, and was stopped"
    return Failure(kind=kind, message=message, reach=Reach.MAYBE_APPLIED, because=message)


def _announced(said: Failure | None, end: AttemptEnd) -> Failure:
    """The failure that the program was about to wait for, with the time that it announced."""
    source = f"it announced a wait of {duration_text(end.announced)}"
    because = f"{source}, and was stopped"
    if said is None or said.kind is Kind.UNKNOWN:
        message = because if said is None else said.message
        said = Failure(kind=Kind.OVERLOADED, message=message, because=because)
    hint = said.hint
    if hint is None or hint.delay < end.announced:
        hint = Hint(delay=end.announced, precision=Precision.SECOND, source=source)
    return replace(said, hint=hint, because=f"{said.because or because}; {source}")


def _in_doubt(end: AttemptEnd, terms: RecoveryTerms) -> Judged:
    """Decide what follows from exit code 0 if the structured output lacks its end.

    A session that the program itself named contains its work, so resuming it repeats nothing; this
    is done once. A restart needs the user's permission.
    """
    what = "it exited with 0, but " + (
        "printed nothing" if end.is_mute else "its output ends without the report of its end"
    )
    failure = Failure(
        kind=Kind.BAD_ANSWER,
        message=what,
        reach=Reach.MAYBE_APPLIED,
        is_retriable=True,
        because="no report",
    )
    is_harmless = terms.may_restart or (terms.can_resume and end.is_session_named)
    if is_harmless and not (terms.before and terms.before[-1].is_doubt):
        judged, _ = _answer(failure, end, terms)
        return judged._replace(is_doubt=True), failure
    because = "it is unclear whether it finished, and restarting it could repeat its work"
    judged, _ = _stopped_in_doubt(end, because, failure, UNSURE)
    return judged._replace(is_doubt=True), failure


# Seconds before the one attempt that probes a guessed limit.
_PATIENCE = 60.0


def _guessed(failure: Failure, end: AttemptEnd, terms: RecoveryTerms) -> Judged:
    """Decide what follows from a failure whose kind is guessed because no pattern matched its text.

    A limit gets one probe after a minute, whatever time stands beside it; if the program fails the
    same way again, that time is believed. Any other failure is not retried, nor is a program
    without a session: a guess does not prove that its work may be repeated.
    """
    if failure.kind.is_limit or failure.kind is Kind.OVERLOADED:
        if not (terms.can_resume or terms.may_restart):
            because = (
                f"{failure.because}; that may be a limit, but restarting could repeat its work"
            )
            return _stopped_in_doubt(end, because, failure, HARMLESS)
        if _was_probed(failure.kind, terms):
            return _answer(failure, end, terms)
        because = f"{failure.because}; that may be a limit: one attempt in a minute"
        probe = Hint(delay=_PATIENCE * (1 + terms.roll / 2), source=because)
        return _answer(failure, end, terms, probe=probe, is_only_probe=True)
    because = f"the failure is not known for sure: {failure.because}"
    advice = advice_for(replace(failure, kind=Kind.UNKNOWN), terms.program)
    return _followed_by(
        end, "stop", because, failure, exit=_exit(end), advice=advice, ending=Ending.UNKNOWN
    )


def _stopped_in_doubt(end: AttemptEnd, because: str, failure: Failure, advice: str) -> Judged:
    """The end of a run whose restart could repeat its work."""
    more: dict[str, Any] = {"exit": _exit(end), "advice": advice, "ending": Ending.MAYBE_APPLIED}
    return _followed_by(end, "stop", because, failure, **more)


def _answer(
    failure: Failure,
    end: AttemptEnd,
    terms: RecoveryTerms,
    *,
    probe: Hint | None = None,
    is_only_probe: bool = False,
) -> Judged:
    """Decide by the policy what follows from a failure.

    `probe` is when a probe would be made first, and why; None for none. With `is_only_probe` the
    run stops if the policy leaves no attempt or time for it; else it waits as without one.
    """
    now, roll = terms.now, terms.roll
    if not terms.can_resume and not terms.may_restart and _is_cut_off(end):
        because = f"{failure.message or failure.kind}: restarting it could repeat its work"
        return _stopped_in_doubt(end, because, failure, HARMLESS)
    if probe is not None:
        # The probe counts as an attempt: attempts and time must be left for it.
        asked = _call(terms).failed(replace(failure, hint=probe), now=now, wall=now, roll=roll)
        if not isinstance(asked, GiveUp):
            until = now + probe.delay
            return _followed_by(end, "again", probe.source, failure, until=until, is_probe=True)
        if is_only_probe:
            return _given_up(asked, failure, end, terms)
    call = _call(terms)
    decision = call.failed(failure, now=now, wall=now, roll=roll)
    assert not isinstance(decision, Verify)  # noqa: S101 -- effects are not unsafe here: see `_call`
    if isinstance(decision, GiveUp):
        return _given_up(decision, failure, end, terms)
    row = sum(call.counts.values())
    if row >= _MOST_IN_A_ROW:
        because = f"{row} attempts in a row failed without a model having answered"
        return _followed_by(end, "stop", because, failure, exit=_exit(end), ending=Ending.EXHAUSTED)
    until = now + decision.delay if isinstance(decision, RetryAfter) else decision.until
    if failure.hint is not None:
        until += roll * min(_LONGEST_SPREAD, _SPREAD * (until - now))
    return _followed_by(end, "again", decision.because, failure, until=until)


def _given_up(decision: GiveUp, failure: Failure, end: AttemptEnd, terms: RecoveryTerms) -> Judged:
    is_later = decision.ending is Ending.HORIZON
    return _followed_by(
        end,
        "stop",
        decision.because,
        failure,
        until=decision.retry_at if is_later else None,
        exit=EX_TEMPFAIL if is_later else _exit(end),
        advice=advice_for(failure, terms.program),
        ending=decision.ending,
    )


def _was_probed(kind: Kind, terms: RecoveryTerms) -> bool:
    """Whether such a limit was probed since a model answered: one probe per series of failures."""
    worked = max((at for at, each in enumerate(terms.before) if each.is_work), default=0)
    return any(each.is_probe and each.kind == kind for each in terms.before[worked:])


def _probe_of_time(failure: Failure, reset: ResetTime | None, terms: RecoveryTerms) -> Hint | None:
    """A probe of a limit whose stated time may be over; None if it is not, or was probed."""
    if not failure.kind.is_limit or _was_probed(failure.kind, terms):
        return None
    if failure.hint is not None and failure.hint.confidence is Confidence.LOW:
        because = (
            f"{failure.hint.source} may have passed already: one attempt before waiting for it"
        )
    elif failure.hint is None and reset is not None:
        because = f"{reset.source} has passed: one attempt before retries become rarer"
    else:
        return None
    return Hint(delay=1 + terms.roll, source=because)


def _is_cut_off(end: AttemptEnd) -> bool:
    """Whether a restart could repeat work.

    `mulligan run` may start a command again after a limit, an overload or a network failure that it
    reported. A program that crashed or was stopped may have done any part of its work, unless it
    prints each step and printed none: opencode is silent until a model answers.
    """
    return not end.is_mute and (end.signal is not None or bool(end.stopped))


def _exit(end: AttemptEnd) -> int:
    """The exit code for a failure: the program's own, unless that is 0 or none.

    1 if we stopped the program: its code then says nothing, and 130 would mean an interrupt by the
    user.
    """
    if end.stopped:
        return 1
    if end.signal is not None:
        return 128 + end.signal
    return end.code or 1


def _call(terms: RecoveryTerms) -> Call:
    """The earlier attempts of this run as the `Call` that the core's `decide` takes.

    An attempt in which a model answered resets the counts per kind, and patience. A wait that the
    server asked for resets patience, too. The total of attempts is never reset.
    """
    policy, before = terms.policy, terms.before
    # An entry for a refused attempt has the number of the attempt before it.
    count = len({each.attempt for each in before if each.attempt})
    call = Call(policy, Effects.IDEMPOTENT, name=terms.program)
    call.attempt = count + 1
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
        call.spent = max(0.0, terms.now - before[0].at)  # waits, and attempts after the first
    if policy.patience is None and call.first_failed_at is not None:
        call.policy = replace(policy, patience=max(policy.horizon, policy.bound))
    return call

"""Reads the output of an ended attempt, and decides what follows.

Only this module imports the patterns and the recovery rules, and only if needed: a generic program
that exited with 0 and printed no JSON succeeded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output import tail

if TYPE_CHECKING:
    from pathlib import Path

    from ...classify.output.reader import Outcome
    from ..agents.adapter import AgentAdapter
    from ..journal.entries import AttemptEnd
    from .recovery import Judged, RecoveryTerms

__all__ = ("is_plainly_well", "read_attempt", "read_retry", "read_torn")


def read_attempt(
    end: AttemptEnd,
    log: Path,
    adapter: AgentAdapter,
    terms: RecoveryTerms,
    before: tuple[AttemptEnd, ...],
    *,
    roll: float,
    retried: Outcome | None = None,
) -> Judged:
    """What follows from the end of an attempt, with the evidence.

    Args:
        end: How it ended.
        log: Its log, without the suffix.
        adapter: The program's adapter.
        terms: What the run was told.
        before: The attempts before it.
        roll: One roll of the dice.
        retried: The failure after which it was about to retry, if we stopped it for that.
    """
    from .recovery import judge

    outcome = None
    if not end.error:
        if end.stopped or end.signal is not None:
            # Read only the output before our signal; the exit code after it means nothing.
            outcome = _outcome(log, adapter, terms.now, None)
        if outcome is None or not outcome.is_done:
            code = 1 if end.stopped else end.code
            outcome = retried or _outcome(log, adapter, terms.now, code)
    return judge(end, outcome, terms, before, roll=roll)


def read_torn(
    end: AttemptEnd,
    log: Path,
    adapter: AgentAdapter,
    terms: RecoveryTerms,
    before: tuple[AttemptEnd, ...],
    *,
    roll: float,
) -> Judged:
    """Decide from its log what follows from an attempt whose supervisor died."""
    from .recovery import judge_torn

    outcome = _outcome(log, adapter, terms.now, None)
    return judge_torn(end, outcome, terms, before, roll=roll)


def read_retry(log: Path, reason: str, adapter: AgentAdapter, now: float) -> Outcome:
    """Why a program retries by itself: from `reason`, else as if it had failed now."""
    from dataclasses import replace

    from ...core.failure import Kind
    from ...core.hint import Confidence

    stdout, stderr = (b"", reason.encode()) if reason else tail(log, _LAST_NOTICES)
    outcome = _read(stdout, stderr, adapter, now, 1)
    if outcome.failure is None or outcome.confidence is Confidence.HIGH:
        return outcome
    # The program still runs: do not stop it because of a guess.
    return replace(outcome, failure=replace(outcome.failure, kind=Kind.UNKNOWN, hint=None))


# How much of the output is searched for the reason of a retry; small, since the program runs.
_LAST_NOTICES = 32 << 10


def _outcome(log: Path, adapter: AgentAdapter, now: float, code: int | None) -> Outcome:
    return _read(*tail(log), adapter, now, code)


def _read(
    stdout: bytes, stderr: bytes, adapter: AgentAdapter, now: float, code: int | None
) -> Outcome:
    from dataclasses import replace

    from ...api.agent_output import load_packs, read_output
    from ...config.zone import local_zone

    outcome = read_output(
        stdout,
        stderr,
        packs=load_packs().packs,
        now=now,
        zone=local_zone(),
        agent="" if adapter.name == "generic" else adapter.name,
        exit_code=code,
    )
    failure, reset = outcome.failure, outcome.reset
    if failure is None or reset is None or not reset.is_just_past:
        return outcome
    # "Try again at 4:43 PM", read at 16:44, means now: it is tried, with growing waits.
    return replace(outcome, failure=replace(failure, hint=None))


def is_plainly_well(end: AttemptEnd, log: Path) -> bool:
    """Whether a generic program succeeded, without reading its output: it printed no JSON."""
    if end.code != 0 or end.stopped:
        return False
    return not any(b"{" in text for text in tail(log))

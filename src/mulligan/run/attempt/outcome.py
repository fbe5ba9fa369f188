"""Reads the log of an ended attempt, and decides what follows.

Only this module imports the patterns and the recovery rules, and only if needed: a generic program
that exited with 0 and printed no JSON succeeded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .output import LOGS

if TYPE_CHECKING:
    from pathlib import Path

    from ...classify.output.reader import Outcome
    from ..agents.adapter import AgentAdapter
    from ..journal.entries import AttemptEnd
    from .recovery import Judged, RecoveryTerms

__all__ = ("is_plainly_well", "read_attempt", "read_retry", "tail")

# How much of a log is read to judge an attempt.
_TAIL = 512 << 10


def read_attempt(
    end: AttemptEnd,
    log: Path,
    adapter: AgentAdapter,
    terms: RecoveryTerms,
    retried: Outcome | None = None,
) -> Judged:
    """What follows from the end of an attempt, with the evidence.

    `log` is its log, without the suffix; `retried` the failure after which it was about to retry,
    if we stopped it for that.
    """
    from .recovery import judge, judge_torn

    if end.stopped == "torn":
        return judge_torn(end, _read(tail(log), adapter, terms.now, None), terms)
    outcome = None
    if not end.error:
        if end.stopped or end.signal is not None:
            # Read only the output before our signal; the exit code after it means nothing.
            outcome = _read(tail(log), adapter, terms.now, None)
        if outcome is None or not outcome.is_done:
            code = 1 if end.stopped else end.code
            outcome = retried or _read(tail(log), adapter, terms.now, code)
    return judge(end, outcome, terms)


def read_retry(log: Path, reason: str, adapter: AgentAdapter, now: float) -> Outcome:
    """Why a program retries by itself: from `reason`, else as if it had failed now."""
    from dataclasses import replace

    from ...core.failure import Kind
    from ...core.hint import Confidence

    printed = (b"", reason.encode()) if reason else tail(log, _LAST_NOTICES)
    outcome = _read(printed, adapter, now, 1)
    if outcome.failure is None or outcome.confidence is Confidence.HIGH:
        return outcome
    # The program still runs: do not stop it because of a guess.
    return replace(outcome, failure=replace(outcome.failure, kind=Kind.UNKNOWN, hint=None))


# How much of the output is searched for the reason of a retry; small, since the program runs.
_LAST_NOTICES = 32 << 10


def _read(
    printed: tuple[bytes, bytes], adapter: AgentAdapter, now: float, code: int | None
) -> Outcome:
    from dataclasses import replace

    from ...api.agent_output import load_packs, read_output
    from ...config.zone import local_zone

    outcome = read_output(
        *printed,
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


def tail(log: Path, most: int = _TAIL) -> tuple[bytes, bytes]:
    """The ends of stdout and stderr of an attempt, from before any stop signal."""
    stdout, stderr = (_tail(log.with_suffix(suffix), most) for suffix in LOGS.values())
    return stdout, stderr


def _tail(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            text = file.read()
    except OSError:  # it could not be kept
        return b""
    # Drop the first line: it is probably cut.
    return text if size <= most else text.partition(b"\n")[2]

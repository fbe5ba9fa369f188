"""How an attempt is read once it has ended.

The patterns and the judgement are loaded here and only here, and only where there is something to
judge: a program that printed nothing and exited with 0 has done well, and costs nothing to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .tap import tail

if TYPE_CHECKING:
    from pathlib import Path

    from ..classify.agent_output import Outcome
    from .agents.adapter import Adapter
    from .recovery import Terms, Verdict
    from .steps import Ended

__all__ = ("Finished", "Reading", "is_plainly_well", "read_attempt", "read_torn")


class Finished(NamedTuple):
    """How an attempt ended, as its supervisor saw it.

    Args:
        took: Seconds.
        code: Exit code; None if a signal ended it or it never started.
        signal: The signal that ended it.
        stopped: Why we ended it; empty if we did not.
        silent: Seconds of silence after which we would end it.
        error: Why it could not be started; empty if it was. `code` is then what a shell says.
        is_mute: Whether it said nothing at all, though it tells each step: it has done nothing.
    """

    took: float
    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    silent: float | None = None
    error: str = ""
    is_mute: bool = False


class Reading(NamedTuple):
    """What an attempt's end means.

    Args:
        verdict: What follows from it.
        message: The words that decided it.
        source: Where they stood, with why they were read that way.
    """

    verdict: Verdict
    message: str = ""
    source: str = ""


def read_attempt(
    finished: Finished,
    log: Path,
    adapter: Adapter,
    terms: Terms,
    before: tuple[Ended, ...],
    *,
    roll: float,
) -> Reading:
    """What follows from the end of an attempt, with the evidence.

    Args:
        finished: How it ended.
        log: Its log, without the suffix.
        adapter: Who knows the program.
        terms: What the run was told.
        before: The attempts before it.
        roll: One roll of the dice.
    """
    from .recovery import judge

    outcome = None
    if not finished.error:
        # Whoever had to be ended did not end well, whatever it made of our signal …
        code = finished.code or 1 if finished.stopped else finished.code
        outcome = _outcome(log, adapter, terms.now, code)
        if finished.stopped or finished.signal is not None:
            # … unless it had reported its success before.
            reported = _outcome(log, adapter, terms.now, None)
            outcome = reported if reported.is_done else outcome
    verdict = judge(finished, outcome, terms, before, now=terms.now, roll=roll)
    failure = verdict.failure
    if failure is None:
        return Reading(verdict)
    if outcome is None or outcome.failure is not failure:
        return Reading(verdict, failure.message, failure.because or "")
    return Reading(verdict, outcome.message, f"{outcome.because} ({outcome.source})")


def read_torn(
    log: Path,
    adapter: Adapter,
    terms: Terms,
    before: tuple[Ended, ...],
    *,
    has_started: bool,
    roll: float,
) -> Reading:
    """What follows from an attempt whose end nobody saw.

    What its log says is believed: a program that reported its success is not started again, a limit
    that it met is waited for. Of the others nobody knows how far they came, so they go on where
    their session stands, or not at all unless the user said that a start anew is harmless.
    """
    from .advice import HARMLESS
    from .recovery import Verdict, judge

    now, died = terms.now, "its supervisor died"
    if not has_started:
        return Reading(Verdict("again", None, f"{died} before it was started", until=now), died)
    outcome = _outcome(log, adapter, now, None)
    if outcome.is_done:
        return Reading(Verdict("done", None, "its log has its success"))
    failure = outcome.failure
    if failure is not None and outcome.is_structured and failure.kind.is_limit:
        verdict = judge(Finished(0.0, code=1), outcome, terms, before, now=now, roll=roll)
        return Reading(verdict, outcome.message, f"{outcome.because} ({outcome.source})")
    if terms.can_resume:
        return Reading(Verdict("again", None, f"{died}; its session goes on", until=now), died)
    if terms.may_restart:
        return Reading(Verdict("again", None, f"{died}; it is started anew", until=now), died)
    because = f"{died}, and starting it anew could do its work twice"
    return Reading(Verdict("stop", None, because, exit=1, advice=HARMLESS), died)


def _outcome(log: Path, adapter: Adapter, now: float, code: int | None) -> Outcome:
    from ..api.words import load_packs, read_output
    from ..config.zone import local_zone

    stdout, stderr = tail(log)
    return read_output(
        stdout,
        stderr,
        packs=load_packs().packs,
        now=now,
        zone=local_zone(),
        agent="" if adapter.name == "generic" else adapter.name,
        exit_code=code,
    )


def is_plainly_well(finished: Finished, log: Path, adapter: Adapter) -> bool:
    """Whether nothing has to be read: it exited with 0, and printed nothing like a report."""
    if finished.code != 0 or finished.stopped or not adapter.is_exit_trusted:
        return False
    if adapter.name != "generic":
        return False
    return not any(b"{" in text for text in tail(log))

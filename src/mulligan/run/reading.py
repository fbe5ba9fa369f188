"""How an attempt is read once it has ended.

The patterns and the judgement are loaded here and only here, and only where there is something to
judge: a program that printed nothing and exited with 0 has done well, and costs nothing to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .tap import tail

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.policy import Policy
    from .agents.adapter import Adapter
    from .recovery import Verdict
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
    """

    took: float
    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    silent: float | None = None
    error: str = ""


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
    *,
    program: str,
    session: str,
    policy: Policy,
    before: tuple[Ended, ...],
    may_restart: bool,
    deadline_at: float | None,
    now: float,
    roll: float,
) -> Reading:
    """What follows from the end of an attempt, with the evidence.

    Args:
        finished: How it ended.
        log: Its log, without the suffix.
        adapter: Who knows the program.
        program: The command's name, for people.
        session: The session to go on with; empty if there is none.
        policy: The rules.
        before: The attempts before it.
        may_restart: Whether it may be started anew after a crash.
        deadline_at: When the run must be over.
        now: Epoch seconds.
        roll: One roll of the dice.
    """
    from ..api.words import load_packs, read_output
    from ..config.zone import local_zone
    from .recovery import Terms, judge

    terms = Terms(
        policy=policy,
        program=program,
        can_resume=adapter.can_resume and bool(session),
        may_restart=may_restart,
        is_exit_trusted=adapter.is_exit_trusted,
        deadline_at=deadline_at,
    )
    outcome = None
    if not finished.error:
        stdout, stderr = tail(log)
        outcome = read_output(
            stdout,
            stderr,
            packs=load_packs().packs,
            now=now,
            zone=local_zone(),
            agent="" if adapter.name == "generic" else adapter.name,
            # Whoever had to be ended did not end well, whatever it made of our signal.
            exit_code=finished.code or 1 if finished.stopped else finished.code,
        )
    verdict = judge(finished, outcome, terms, before, now=now, roll=roll)
    failure = verdict.failure
    if failure is None:
        return Reading(verdict)
    if outcome is None or outcome.failure is not failure:
        return Reading(verdict, failure.message, failure.because or "")
    return Reading(verdict, outcome.message, f"{outcome.because} ({outcome.source})")


def read_torn(
    log: Path, adapter: Adapter, *, has_started: bool, session: str, may_restart: bool, now: float
) -> Verdict:
    """What follows from an attempt whose end nobody saw.

    What its log says is believed: a program that reported its success is not started again. Of
    the others nobody knows how far they came, so they go on where their session stands, or not at
    all unless the user said that a start anew is harmless.
    """
    from ..api.words import load_packs, read_output
    from ..config.zone import local_zone
    from .recovery import Verdict

    if not has_started:
        return Verdict("again", None, "its supervisor died before it was started", until=now)
    stdout, stderr = tail(log)
    agent = "" if adapter.name == "generic" else adapter.name
    outcome = read_output(
        stdout, stderr, packs=load_packs().packs, now=now, zone=local_zone(), agent=agent
    )
    if outcome.failure is None and outcome.source and not outcome.is_progress:
        return Verdict("done", None, f"its log has its success ({outcome.source})")
    if adapter.can_resume and session:
        return Verdict("again", None, "its supervisor died; its session goes on", until=now)
    if may_restart:
        return Verdict("again", None, "its supervisor died; it is started anew", until=now)
    because = "its supervisor died, and starting it anew could do its work twice"
    return Verdict("stop", None, because, exit=1, advice="if that is harmless: --restart")


def is_plainly_well(finished: Finished, log: Path, adapter: Adapter) -> bool:
    """Whether nothing has to be read: it exited with 0, and printed nothing like a report."""
    if finished.code != 0 or finished.stopped or not adapter.is_exit_trusted:
        return False
    if adapter.name != "generic":
        return False
    return not any(b"{" in text for text in tail(log))

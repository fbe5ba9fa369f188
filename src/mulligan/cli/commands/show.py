"""`mulligan show`: print one run in detail, or its output."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from time import time
from typing import TYPE_CHECKING, BinaryIO

import click

from ...core.duration import duration_text
from ...core.redaction import clean
from ...run.attempt.output import AFTER, LOGS
from ...run.journal.entries import PLAN
from ...run.journal.store import RunStore, UnreadableRun
from ...run.plan.acceptance import rejection
from ...run.show.messages import (
    clock,
    decision_text,
    ending_name,
    money,
    seconds_waited,
    token_text,
)
from .. import EXIT_FAILED, Unusable
from ..run_names import RUN, newest
from ..ui.tables import columns
from .runs import as_data, standing, unreadable_data

if TYPE_CHECKING:
    from pathlib import Path

    from ...run.agents.adapter import Stream
    from ...run.journal.entries import AttemptEnd
    from ...run.journal.state import RunState

__all__ = ("command",)

_BESIDE = ("checks", "remarks")
_HEAD = ("agent", "status", "attempts", "cost", "because")


@click.command(
    "show",
    epilog="Logs are the program's own bytes, unmasked and unfiltered. Exit codes: 0 done, "
    "1 no such run, or it cannot be read, 2 wrong usage.",
)
@click.argument("run", required=False, type=RUN)
@click.option(
    "--log",
    "log",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=0,
    metavar="[N]",
    help="Print the unmodified stdout and stderr of attempt N; of the last one without N.",
)
@click.option(
    "--answer",
    "is_answer",
    is_flag=True,
    help="Print only what its last attempt showed on stdout.",
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def command(run: str | None, *, log: int | None, is_answer: bool, is_json: bool) -> int:
    """Show RUN: each attempt, how it ended, what was decided and why.

    RUN is its id, a prefix of it, or its name; by default the newest run.

    \b
    mulligan show k3fqzz             its attempts
    mulligan show port --log         the output of its last attempt
    mulligan show port --log 1       the output of its first attempt
    mulligan show k3fqzz.review.bugs an agent of a plan; show k3fqzz lists them
    mulligan show port --answer      the text of its last attempt, without events
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    runs = RunStore()
    id_ = runs.find(run) if run else newest(runs)
    try:
        state = runs.look(id_) if id_ else None
    except UnreadableRun as error:
        _show_unreadable(runs, error, is_json=is_json)
        return EXIT_FAILED
    if state is None:
        raise Unusable("there is no run yet", "start one with: mulligan run -- COMMAND")
    if is_answer:
        _print_answer(runs, id_, state)
    elif log is not None:
        _print_log(runs.files(id_), id_, log or state.attempts, state.attempts)
    elif is_json:
        begun = [each._asdict() for each in state.begun]
        ended = [each._asdict() for each in state.ended]
        whole = {**as_data(runs, id_, state), "terms": state.made.terms}
        whole.update(host=state.made.host, user=state.made.user, variables=state.made.variables)
        if state.made.agent == PLAN:
            whole["agents"] = [as_data(runs, *each) for each in _agents(runs, id_)]
        beside = {name: [each._asdict() for each in getattr(state, name)] for name in _BESIDE}
        click.echo(json.dumps({**whole, "begun": begun, "ended": ended, **beside}))
    else:
        for line in _lines(runs, id_, state):
            click.echo(line)
    return 0


def _show_unreadable(runs: RunStore, error: UnreadableRun, *, is_json: bool) -> None:
    data = unreadable_data(runs, error.id, error.because)
    if is_json:
        click.echo(json.dumps(data))
        return
    for label in ("run", "status", "because", "files"):
        click.echo(f"{label:<9} {clean(data[label])}")
    click.echo("hint      mulligan doctor shows what to do")


def _print_answer(runs: RunStore, id_: str, state: RunState) -> None:
    if state.made.agent == PLAN:
        raise Unusable(
            f"run {id_} is a plan, and each of its agents has its own answer",
            f"mulligan show {id_} lists them",
        )
    from ...run.agents.adapter import LaunchRequest
    from ...run.agents.catalogue import recognise
    from ...run.attempt.output import answer_in

    log = _log(runs.files(id_), id_, state.attempts, state.attempts)
    given = runs.command(id_)
    adapter = recognise(given, state.made.agent)
    launch = adapter.start(given, LaunchRequest())
    sys.stdout.flush()
    if launch.is_translated:
        # What was added to the command made events of its text: they are read as they were then.
        for text in answer_in(log, adapter.reader(launch)):
            sys.stdout.buffer.write(text)
    else:
        with log.with_suffix(".out").open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _log(folder: Path, id_: str, number: int, attempts: int) -> Path:
    log = folder / f"attempt-{number}"
    if number > attempts or not log.with_suffix(".out").exists():
        raise Unusable(
            f"run {id_} has no log of attempt {number}; it began {attempts}",
            f"mulligan show {id_} lists its attempts",
        )
    return log


def _print_log(folder: Path, id_: str, number: int, attempts: int) -> None:
    log = _log(folder, id_, number, attempts)
    sys.stdout.flush()
    sys.stderr.flush()
    places: dict[Stream, BinaryIO] = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    for stream, to in places.items():
        for suffix in (LOGS[stream], AFTER[stream]):  # the second only if we told it to end
            with contextlib.suppress(FileNotFoundError), log.with_suffix(suffix).open("rb") as file:
                shutil.copyfileobj(file, to)
        to.flush()


def _lines(runs: RunStore, id_: str, state: RunState) -> list[str]:
    now, made = time(), state.made
    spent = ", ".join(each for each in (money(state.cost), token_text(state.tokens)) if each)
    facts = [
        ("run", clean(f"{id_} {made.name}")),
        ("command", clean(made.command)),
        ("folder", clean(made.cwd)),
        ("agent", made.agent),
        ("begun", clock(made.at, now)),
        ("status", _status(runs, id_, state, now)),
        ("because", clean(state.undelivered) if state.status == "done" else ""),
        ("hint", _hint(runs, id_, state)),
        ("attempts", _attempts(state)),
        ("spent", spent),
        ("session", state.session),
        ("files", clean(str(runs.folder / "runs" / id_))),
    ]
    lines = [f"{label:<9} {text}" for label, text in facts if text]
    if agents := _agents(runs, id_):
        lines += [
            "",
            *columns(_HEAD, [_row(runs, *each) for each in agents], right="attempts cost"),
        ]
    lines += [line for at in range(state.attempts) for line in _attempt(state, at, now)]
    lines += [line for each in state.ended for line in _unmade(each, now)]
    remarks = [f"{clock(each.at, now)} {clean(each.text)}" for each in state.remarks]
    for child, found in _agents(runs, id_):
        remarks += [f"{clock(e.at, now)} {child}: {clean(e.text)}" for e in found.remarks]
    return [*lines, "", *remarks] if remarks else lines


def _hint(runs: RunStore, id_: str, state: RunState) -> str:
    """What to do about work that is done and was not delivered."""
    plan = id_.partition(".")[0]
    found = runs.look(plan) if rejection(state) else None
    # A plan may have succeeded without this agent; then there is nothing to resume.
    can_go_on = found is not None and found.status != "done"
    return f"once fixed: mulligan resume {plan}" if can_go_on else ""


def _unmade(step: AttemptEnd, now: float) -> list[str]:
    """Why there was no attempt, or what went wrong around it."""
    if step.stopped != "refused" and step.attempt:
        return []
    hint = [f"  hint     {step.advice}"] if step.advice else []
    return [f"\n{clock(step.at, now)} {ending_name(step)}: {step.because}", *hint]


def _agents(runs: RunStore, id_: str) -> list[tuple[str, RunState]]:
    """The agents of a plan that were begun, the first one first; none for any other run."""
    return sorted(runs.all(parent=id_), key=lambda each: each[1].made.at)


def _row(runs: RunStore, id_: str, state: RunState) -> tuple[str, ...]:
    status = rejection(state) or standing(runs, id_, state)
    why = clean(state.undelivered if state.status == "done" else state.because)
    return id_, status, str(state.attempts), money(state.cost), why


def _attempts(state: RunState) -> str:
    between = f", {duration_text(round(seconds_waited(state)))} of waiting between"
    return f"{state.attempts}{between if state.attempts > 1 else ''}"


def _status(runs: RunStore, id_: str, state: RunState, now: float) -> str:
    if short := rejection(state):
        return f"{short}, though its program has finished"
    status = standing(runs, id_, state)
    if state.until is not None:
        status += f", until {clock(state.until, now)}"
    if not state.is_open:
        status += f", exit code {130 if state.status == 'cancelled' else state.exit}"
    return status


def _attempt(state: RunState, at: int, now: float) -> list[str]:
    begun = state.begun[at]
    made = [each for each in state.ended if each.stopped != "refused"]
    ended = next((each for each in made if each.attempt == begun.attempt), None)
    how = {"start": "started", "resume": "resumed its session", "restart": "restarted"}
    if state.made.agent == PLAN:
        how["resume"] = "resumed"
    first = f"\nattempt {begun.attempt}  {clock(begun.at, now)}, {how[begun.how]}"
    if ended is None:
        return [first, "  so far   its end has not been recorded"]
    code = "" if ended.code is None else f", exit code {ended.code}"
    code = code if ended.signal is None else f", signal {ended.signal}"
    how_ended, then = ending_name(ended), decision_text(ended)
    if state.made.agent == PLAN:
        how_ended = {"stop": "failed", "again": "parked"}.get(ended.then, how_ended)
        until = f"continues at {clock(ended.until, now)}" if ended.until else ""
        then = until if ended.then == "again" else ""  # what became of it is in the line above
    rows = [
        ("ended", f"{how_ended} after {duration_text(ended.took)}{code}"),
        ("said", ended.message),
        ("read", ended.reading if ended.reading != ended.message else ""),
        ("then", then),
        ("because", ended.because if ended.then != "done" and ended.because not in then else ""),
        ("hint", ended.advice),
        ("retries", f"{ended.retries} of its own" if ended.retries else ""),
        ("spent", ", ".join(e for e in (money(ended.cost), token_text(ended.tokens)) if e)),
    ]
    lines = [first, *(f"  {label:<8} {text}" for label, text in rows if text)]
    for check in state.checks:
        if check.attempt == begun.attempt:
            lines.append(f"  check    {'verified' if check.is_good else 'not verified'}")
            said = () if check.is_good else check.said.splitlines()
            lines += [f"           {clean(line)}".rstrip() for line in said]
    return lines

"""`mulligan show`: everything about one run."""

from __future__ import annotations

import json
import shutil
import sys
from time import time
from typing import TYPE_CHECKING

import click

from ..core.duration import duration_text
from ..core.text import clean
from ..run.acceptance import fell_short
from ..run.desk import Desk
from ..run.steps import PLAN
from ..run.words import clock, counted, followed, met, money, waited
from . import Unusable
from .columns import columns
from .run_names import RUN, newest
from .runs import as_data, standing

if TYPE_CHECKING:
    from pathlib import Path

    from ..run.state import RunState
    from ..run.steps import Ended

__all__ = ("command",)

_BESIDE = ("checks", "remarks")
_HEAD = ("agent", "status", "attempts", "cost", "because")


@click.command(
    "show",
    epilog="Logs are the program's own bytes, unmasked and unfiltered. Exit codes: 0 done, "
    "1 no such run, 2 wrong usage.",
)
@click.argument("run", required=False, type=RUN)
@click.option(
    "--log",
    "log",
    type=click.IntRange(min=0),
    is_flag=False,
    flag_value=0,
    metavar="[N]",
    help="Print what attempt N printed, stdout and stderr as they were; the last one without N.",
)
@click.option(
    "--answer",
    "is_answer",
    is_flag=True,
    help="Print what you would have seen of its last attempt on stdout, and nothing else.",
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
def command(run: str | None, *, log: int | None, is_answer: bool, is_json: bool) -> None:
    """Show RUN: each attempt, how it ended, what followed and why.

    RUN is its id, the beginning of it, or its name; the newest run if none is named.

    \b
    mulligan show k3fqzz             what happened in it
    mulligan show port --log         what its last attempt printed
    mulligan show port --log 1       what its first attempt printed
    mulligan show k3fqzz.review.bugs an agent of a plan; the plan's own lists them
    mulligan show port --answer      the text of its last attempt, without events
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    desk = Desk()
    id_ = desk.find(run) if run else newest(desk)
    state = desk.look(id_) if id_ else None
    if state is None:
        raise Unusable("there is no run yet", "begin one with: mulligan run -- COMMAND")
    if is_answer:
        _print_answer(desk, id_, state)
    elif log is not None:
        _print_log(desk.files(id_), id_, log or state.attempts, state.attempts)
    elif is_json:
        begun = [each._asdict() for each in state.begun]
        ended = [each._asdict() for each in state.ended]
        whole = {**as_data(desk, id_, state), "terms": state.made.terms}
        whole.update(host=state.made.host, user=state.made.user, variables=state.made.variables)
        if state.made.agent == PLAN:
            whole["agents"] = [as_data(desk, *each) for each in _agents(desk, id_)]
        beside = {name: [each._asdict() for each in getattr(state, name)] for name in _BESIDE}
        click.echo(json.dumps({**whole, "begun": begun, "ended": ended, **beside}))
    else:
        for line in _lines(desk, id_, state):
            click.echo(line)


def _print_answer(desk: Desk, id_: str, state: RunState) -> None:
    from ..run.steps import PLAN

    if state.made.agent == PLAN:
        raise Unusable(
            f"run {id_} is a plan, and each of its agents has its own answer",
            f"mulligan show {id_} lists them",
        )
    from ..run.agents.adapter import Wish
    from ..run.agents.catalogue import recognise
    from ..run.tap import answer_in

    log = _log(desk.files(id_), id_, state.attempts, state.attempts)
    given = desk.command(id_)
    adapter = recognise(given, state.made.agent)
    launch = adapter.start(given, Wish())
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
    for suffix, to in ((".out", sys.stdout.buffer), (".err", sys.stderr.buffer)):
        with log.with_suffix(suffix).open("rb") as file:
            shutil.copyfileobj(file, to)
        to.flush()


def _lines(desk: Desk, id_: str, state: RunState) -> list[str]:
    now, made = time(), state.made
    spent = ", ".join(each for each in (money(state.cost), counted(state.tokens)) if each)
    facts = [
        ("run", clean(f"{id_} {made.name}")),
        ("command", clean(made.command)),
        ("folder", clean(made.cwd)),
        ("agent", made.agent),
        ("begun", clock(made.at, now)),
        ("status", _status(desk, id_, state, now)),
        ("because", clean(state.undelivered) if state.status == "done" else ""),
        ("hint", _hint(desk, id_, state)),
        ("attempts", _attempts(state)),
        ("spent", spent),
        ("session", state.session),
        ("files", clean(str(desk.folder / "runs" / id_))),
    ]
    lines = [f"{label:<9} {text}" for label, text in facts if text]
    if agents := _agents(desk, id_):
        lines += [
            "",
            *columns(_HEAD, [_row(desk, *each) for each in agents], right="attempts cost"),
        ]
    lines += [line for at in range(state.attempts) for line in _attempt(state, at, now)]
    lines += [line for each in state.ended for line in _unmade(each, now)]
    remarks = [f"{clock(each.at, now)} {clean(each.text)}" for each in state.remarks]
    for child, found in _agents(desk, id_):
        remarks += [f"{clock(e.at, now)} {child}: {clean(e.text)}" for e in found.remarks]
    return [*lines, "", *remarks] if remarks else lines


def _hint(desk: Desk, id_: str, state: RunState) -> str:
    """What to do about work that is done and has not reached anybody."""
    plan = id_.partition(".")[0]
    found = desk.look(plan) if fell_short(state) else None
    # A plan may have succeeded without this agent; then there is nothing to take up.
    can_go_on = found is not None and found.status != "done"
    return f"once mended: mulligan resume {plan}" if can_go_on else ""


def _unmade(step: Ended, now: float) -> list[str]:
    """Why there was no attempt, or what went wrong around it."""
    if step.stopped != "refused" and step.attempt:
        return []
    hint = [f"  hint     {step.advice}"] if step.advice else []
    return [f"\n{clock(step.at, now)} {met(step)}: {step.because}", *hint]


def _agents(desk: Desk, id_: str) -> list[tuple[str, RunState]]:
    """The agents of a plan that were begun, the first one first; none for any other run."""
    return sorted(desk.all(parent=id_), key=lambda each: each[1].made.at)


def _row(desk: Desk, id_: str, state: RunState) -> tuple[str, ...]:
    status = fell_short(state) or standing(desk, id_, state)
    why = clean(state.undelivered if state.status == "done" else state.because)
    return id_, status, str(state.attempts), money(state.cost), why


def _attempts(state: RunState) -> str:
    between = f", {duration_text(round(waited(state)))} of waiting between"
    return f"{state.attempts}{between if state.attempts > 1 else ''}"


def _status(desk: Desk, id_: str, state: RunState, now: float) -> str:
    if short := fell_short(state):
        return f"{short}, though its program is done"
    status = standing(desk, id_, state)
    if state.until is not None:
        status += f", until {clock(state.until, now)}"
    if not state.is_open:
        status += f", exit code {130 if state.status == 'cancelled' else state.exit}"
    return status


def _attempt(state: RunState, at: int, now: float) -> list[str]:
    begun = state.begun[at]
    made = [each for each in state.ended if each.stopped != "refused"]
    ended = next((each for each in made if each.attempt == begun.attempt), None)
    how = {"start": "started", "resume": "resumed its session", "restart": "started anew"}
    if state.made.agent == PLAN:
        how["resume"] = "taken up again"
    first = f"\nattempt {begun.attempt}  {clock(begun.at, now)}, {how[begun.how]}"
    if ended is None:
        return [first, "  so far   nobody has written down its end"]
    code = "" if ended.code is None else f", exit code {ended.code}"
    code = code if ended.signal is None else f", signal {ended.signal}"
    how_ended, then = met(ended), followed(ended)
    if state.made.agent == PLAN:
        how_ended = {"stop": "failed", "again": "parked"}.get(ended.then, how_ended)
        until = f"goes on at {clock(ended.until, now)}" if ended.until else ""
        then = until if ended.then == "again" else ""  # what became of it is in the line above
    rows = [
        ("ended", f"{how_ended} after {duration_text(ended.took)}{code}"),
        ("said", ended.message),
        ("read", ended.reading),
        ("then", then),
        ("because", ended.because if ended.then != "done" else ""),
        ("hint", ended.advice),
        ("retries", f"{ended.retries} of its own" if ended.retries else ""),
        ("spent", ", ".join(e for e in (money(ended.cost), counted(ended.tokens)) if e)),
    ]
    lines = [first, *(f"  {label:<8} {text}" for label, text in rows if text)]
    for check in state.checks:
        if check.attempt == begun.attempt:
            lines.append(f"  check    {'verified' if check.is_good else 'not verified'}")
            said = () if check.is_good else check.said.splitlines()
            lines += [f"           {clean(line)}".rstrip() for line in said]
    return lines

"""`mulligan classify`: the kind of failure and the reset time in a program's output."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, BinaryIO
from zoneinfo import ZoneInfo

import click

from ...api.agent_output import load_packs, read_output
from ...config.zone import local_zone
from ..ui.classifications import RowDefaults, answer, as_json, as_text
from ..ui.completion import agents
from ..ui.program_output import check_agent, json_lines, known_agents, output_in

if TYPE_CHECKING:
    from ...classify.pattern_packs import Packs

__all__ = ("command",)


@click.command()
@click.option(
    "--agent",
    default="",
    metavar="NAME",
    shell_complete=agents,
    help="The program: claude, codex, gemini, …",
)
@click.option("--exit-code", type=int, default=None, metavar="N", help="Its exit code.")
@click.option(
    "--now", "now_text", default=None, metavar="ISO", help="The time of the output, if not now."
)
@click.option(
    "--tz",
    "zone_name",
    default=None,
    metavar="ZONE",
    help="The time zone of the host, if not the local one.",
)
@click.option("--explain", "is_explain", is_flag=True, help="Say which line and rule decided.")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
@click.option("--jsonl", "is_jsonl", is_flag=True, help="Read and print one JSON object per line.")
@click.argument("file", type=click.File("rb"), default="-")
def command(  # noqa: PLR0917 -- click passes options by name
    agent: str,
    exit_code: int | None,
    now_text: str | None,
    zone_name: str | None,
    is_explain: bool,  # noqa: FBT001 -- same
    is_json: bool,  # noqa: FBT001 -- same
    is_jsonl: bool,  # noqa: FBT001 -- same
    file: BinaryIO,
) -> None:
    """Classify a program's output: kind of failure, reset time.

    FILE contains the program's output; standard input by default. Nothing is executed. Of more
    than 4 MB only the end is read.

    With --jsonl each input line is an object with `id` and `text` (or `stdout` and `stderr`), and
    where known `agent`, `now`, `local_tz`, `exit_code`, `stream`; the options --agent, --now, --tz
    and --exit-code hold for lines that do not say it. Each output line has `id`, `kind` (null if it
    is not a failure), `reset_in` (seconds to the stated reset, without any margin), `reset_at`,
    `confidence` (of the kind and of the reset, the lower one), `agent`, `model` (that the limit is
    about), `work_left`, `source` and `because`. A line that cannot be read gets no output line: an
    error on stderr names it, and the exit code is 2.
    """
    if is_explain and (is_json or is_jsonl):
        raise click.UsageError("--explain prints text; use it without --json and --jsonl")
    if is_json and is_jsonl:
        raise click.UsageError("--json prints one object, --jsonl one a line; use one of them")
    loaded = load_packs()
    for problem in loaded.problems:
        click.echo(f"warning: {problem}", err=True)
    check_agent(agent, loaded.packs)
    local = local_zone()
    given = _zone(zone_name) if zone_name else None
    zone = given or local
    now = time.time() if now_text is None else _now(now_text, zone)
    if is_jsonl:
        defaults = RowDefaults(agent=agent, exit_code=exit_code, now=now, zone=given, local=local)
        _answer_lines(file, loaded.packs, defaults)
        return
    printed = output_in(file, is_counted=is_explain)
    read = partial(read_output, packs=loaded.packs, now=now, zone=zone)
    if printed.head and not agent:  # programs name themselves in their first lines
        agent = read(printed.head).agent
    outcome = read(printed.text, agent=agent, exit_code=exit_code)
    click.echo(as_json(outcome) if is_json else as_text(outcome, now=now, zone=zone))
    if is_explain:
        from ..ui.explanations import Readings, explained

        readings = Readings(
            outcome=outcome,
            exit_code=exit_code,
            if_well=read(printed.text, agent=agent, exit_code=0),
            if_failed=read(printed.text, agent=agent, exit_code=1),
        )
        click.echo(explained(readings, printed, loaded.packs))


def _answer_lines(file: BinaryIO, packs: Packs, defaults: RowDefaults) -> None:
    """Print an answer for each JSON line; exit with 2 if some could not be read."""
    known, is_broken = known_agents(packs), False
    for number, line in enumerate(json_lines(file), 1):
        if not line.strip():
            continue
        try:
            click.echo(answer(line, number, packs=packs, known=known, defaults=defaults))
        except click.ClickException as error:
            click.echo(f"error: {error.message}", err=True)
            is_broken = True
    if is_broken:
        click.get_current_context().exit(2)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise click.BadParameter(
            f"needs an IANA zone such as Europe/Berlin; got {name!r}", param_hint="--tz"
        ) from None


def _now(text: str, zone: tzinfo) -> float:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        message = f"needs a time such as 2026-07-06T14:00:00+02:00; got {text!r}"
        raise click.BadParameter(message, param_hint="--now") from None

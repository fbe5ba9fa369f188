"""`mulligan classify`: the kind of failure and the reset time in a program's output."""

from __future__ import annotations

import os
import time
from collections import deque
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, BinaryIO
from zoneinfo import ZoneInfo

import click

from ...api.agent_output import load_packs, read_output
from ...config.zone import local_zone
from ..ui.classifications import as_json, as_lines, as_text
from ..ui.completion import agents

if TYPE_CHECKING:
    from ...classify.pattern_packs import Packs

__all__ = ("command",)

# A failure is reported in the last lines: no more than this is kept in memory.
_MOST = 4 << 20
_HEAD = 64 << 10


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
    where known `agent`, `now`, `local_tz`, `exit_code`, `stream`. Each output line has `id`,
    `kind` (null if it is not a failure), `reset_in` (seconds to the stated reset, without any
    margin), `reset_at`, `confidence` (of the kind and of the reset, the lower one), `agent`,
    `model` (that the limit is about), `work_left`, `source` and `because`.
    """
    if is_explain and (is_json or is_jsonl):
        raise click.UsageError("--explain prints text; use it without --json and --jsonl")
    loaded = load_packs()
    for problem in loaded.problems:
        click.echo(f"warning: {problem}", err=True)
    _check_agent(agent, loaded.packs)
    zone = _zone(zone_name) if zone_name else local_zone()
    now = time.time() if now_text is None else _now(now_text, zone)
    if is_jsonl:
        for line in as_lines(file, packs=loaded.packs, agent=agent, now=now, zone=zone):
            click.echo(line)
        return
    head, end = _ends_of(file)
    if head and not agent:  # programs name themselves in their first lines
        agent = read_output(head, packs=loaded.packs, now=now, zone=zone).agent
    outcome = read_output(
        end, packs=loaded.packs, now=now, zone=zone, agent=agent, exit_code=exit_code
    )
    click.echo(as_json(outcome) if is_json else as_text(outcome, now=now, zone=zone))
    if is_explain:
        from ..ui.explanations import explained

        click.echo(explained(outcome, end.decode("utf-8", "replace"), loaded.packs))


def _ends_of(file: BinaryIO) -> tuple[bytes, bytes]:
    """The beginning and the end of a long output; nothing and all of a short one."""
    head = file.read(_HEAD)
    if file.seekable() and (size := file.seek(0, os.SEEK_END)) > _MOST:
        file.seek(size - _MOST)
        return head, _from_line(file.read())
    if file.seekable():
        file.seek(0)
        return b"", file.read()
    parts, kept, is_cut = deque([head]), len(head), False
    while part := file.read(_HEAD):
        parts.append(part)
        kept += len(part)
        while kept - len(parts[0]) >= _MOST:
            kept -= len(parts.popleft())
            is_cut = True
    end = b"".join(parts)
    return (head, _from_line(end)) if is_cut else (b"", end)


def _from_line(text: bytes) -> bytes:
    """`text` from its first whole line on, unless it is all one line."""
    return text.partition(b"\n")[2] or text


def _check_agent(name: str, packs: Packs) -> None:
    """Refuse a program that neither an adapter nor a pack knows."""
    from ...core.suggestions import nearest
    from ...run.agents.catalogue import NAMES

    known = {*NAMES, "generic", *(each for one in packs.packs for each in (one.name, *one.agents))}
    if name and name not in known:
        message = f"no agent is called {name!r}; {nearest(name, sorted(known))}"
        raise click.BadParameter(message, param_hint="--agent")


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

"""`mulligan classify`: what a program's output means."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from typing import BinaryIO
from zoneinfo import ZoneInfo

import click

from ..api.words import load_packs, read_output
from ..config.zone import local_zone
from .outcomes import as_json, as_lines, as_text

__all__ = ("command",)


@click.command()
@click.option("--agent", default="", metavar="NAME", help="The program: claude, codex, gemini, …")
@click.option("--exit-code", type=int, default=None, metavar="N", help="How it exited.")
@click.option("--now", "now_text", default=None, metavar="ISO", help="The time it is, if not now.")
@click.option(
    "--tz", "zone_name", default=None, metavar="ZONE", help="The host's zone, if not ours."
)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
@click.option("--jsonl", "is_jsonl", is_flag=True, help="Read an object a line, print one a line.")
@click.argument("file", type=click.File("rb"), default="-")
def command(  # noqa: PLR0917 -- click passes options by name
    agent: str,
    exit_code: int | None,
    now_text: str | None,
    zone_name: str | None,
    is_json: bool,  # noqa: FBT001 -- same
    is_jsonl: bool,  # noqa: FBT001 -- same
    file: BinaryIO,
) -> None:
    """Say what a program's output means, and when its limit resets.

    FILE holds what the program printed; standard input if it is absent. Nothing is executed.

    With --jsonl each input line is an object with `id` and `text` (or `stdout` and `stderr`), and
    where known `agent`, `now`, `local_tz`, `exit_code`, `stream`. Each output line has `id`,
    `kind` (null if it is not a failure), `reset_in` (seconds to the stated reset, without any
    margin), `reset_at`, `confidence`, `agent`, `source` and `because`.
    """
    loaded = load_packs()
    for problem in loaded.problems:
        click.echo(f"warning: {problem}", err=True)
    zone = _zone(zone_name) if zone_name else local_zone()
    now = time.time() if now_text is None else _now(now_text, zone)
    if is_jsonl:
        for line in as_lines(file, packs=loaded.packs, agent=agent, now=now, zone=zone):
            click.echo(line)
        return
    outcome = read_output(
        file.read(), packs=loaded.packs, now=now, zone=zone, agent=agent, exit_code=exit_code
    )
    click.echo(as_json(outcome) if is_json else as_text(outcome, now=now, zone=zone))


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise click.BadParameter(
            f"needs an IANA zone such as Europe/Berlin; got {name!r}"
        ) from None


def _now(text: str, zone: tzinfo) -> float:
    try:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        message = f"needs a time such as 2026-07-06T14:00:00+02:00; got {text!r}"
        raise click.BadParameter(message, param_hint="--now") from None

"""`mulligan report`: a masked sample of output that was misread, for a bug report."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

import click

from ...api.agent_output import load_packs, read_output
from ...config.zone import local_zone
from ...core.failure import Kind
from ...core.redaction import mask, printable
from ..ui.completion import agents

__all__ = ("command", "masked_sample")

# A failure is reported in the last lines, and a person reads the sample before it is sent.
_MOST_LINES = 80
_MOST = 32 << 10
# Personal data, which say nothing about a failure.
_PERSONAL = (
    (re.compile(r"(?i)(/(?:home|users)/|[a-z]:\\users\\)[^/\\\s:\"']+"), r"\1user"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"), "user@example.org"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "192.0.2.1"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[id]"),
    (re.compile(r"\b(?:org|proj|req|ak|acct|user|team)[-_][A-Za-z0-9]{8,64}\b"), "[id]"),
    (re.compile(r"\b(?=[0-9a-f]{0,63}[a-f])(?=[a-f]{0,63}\d)[0-9a-f]{16,64}\b"), "[id]"),
)


def masked_sample(text: str) -> str:
    """The end of `text` without secrets, names of people, addresses and ids."""
    lines = printable(text[-_MOST:]).split("\n")[-_MOST_LINES:]
    plain = mask("\n".join(lines))
    for pattern, instead in _PERSONAL:
        plain = pattern.sub(instead, plain)
    return plain


@click.command()
@click.option(
    "--agent", default="", metavar="NAME", shell_complete=agents, help="The program: claude, …"
)
@click.option("--exit-code", type=int, default=None, metavar="N", help="Its exit code.")
@click.option(
    "--expected",
    type=click.Choice([*map(str, Kind), "not_failure"]),
    default=None,
    metavar="KIND",
    help="What it really was: a kind of failure, or not_failure.",
)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Write it to this file.")
@click.argument("file", type=click.File("rb"), default="-")
def command(
    agent: str, exit_code: int | None, expected: str | None, out: Path | None, file: BinaryIO
) -> None:
    """Write a masked sample of output that Mulligan misread, to send with a bug report.

    FILE contains the program's output; standard input by default. The sample is one line of JSON:
    the last 80 lines without secrets, names of users, addresses and ids, and how Mulligan
    classified them. Nothing is sent: read the sample before you send it.
    """
    raw = file.read()[-(4 << 20) :].decode("utf-8", "replace")
    now = time.time()
    zone = local_zone()
    outcome = read_output(
        raw, packs=load_packs().packs, now=now, zone=zone, agent=agent, exit_code=exit_code
    )
    sample = {
        "text": masked_sample(raw),
        "label": expected,
        "agent": agent or outcome.agent or None,
        "exit_code": exit_code,
        "now": datetime.fromtimestamp(now, UTC).astimezone(zone).isoformat(timespec="seconds"),
        "kind": None if outcome.failure is None else str(outcome.failure.kind),
        "reset_in": None if outcome.reset is None else round(outcome.reset.seconds, 3),
        "confidence": str(outcome.confidence),
        "because": outcome.because,
        "mulligan": version("mulligan"),
    }
    line = json.dumps(sample, ensure_ascii=False)
    if out is None:
        click.echo(line)
        return
    try:
        out.write_text(line + "\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None
    click.echo(f"wrote {out}: read it before you send it", err=True)

"""`mulligan report`: a masked sample of output that was misread, for a bug report."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from zoneinfo import ZoneInfo

import click

from ...api.agent_output import load_packs, read_output
from ...config.zone import local_zone
from ...core.duration import duration_text
from ...core.failure import Kind
from ...core.redaction import MASK, mask, printable
from ..ui.completion import agents
from ..ui.program_output import check_agent, output_in
from ..ui.types import DURATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...api.agent_output import Outcome

__all__ = ("command", "masked_sample")

# A failure is reported in the last lines, and a person reads the sample before it is sent.
_MOST_LINES = 80
_MOST = 32 << 10
# What is masked: far more than what is kept, so that no secret begins above it.
_MASKED = 256 << 10

_LETTER = r"[^/\\\s:;,\"'<>|(){}\[\]]"
_NAME = rf"{_LETTER}{{1,64}}"
_SEPARATOR = r"(?:/|\\{1,4}|%2F)"
_HOME = rf"{_SEPARATOR}(?:home|users){_SEPARATOR}"
_ID_KEY = (
    r"(?<![a-z])(?:[a-z]{1,20}[_-]?)?(?:user|account|org|organi[sz]ation|customer|team|project"
    r"|workspace|device|machine|client|tenant|thread|request|trace|message|conversation"
    r"|installation|host)[_-]?(?:id|uuid|name|slug|email)"
)
_NUMBER = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX = r"[0-9A-Fa-f]{1,4}"
_ADDRESS = re.compile(
    # Chrome/131.0.0.0   version 1.2.3.4   v1.2.3.4
    rf"(?P<version>\b[A-Z]\w{{1,30}}/|\b[Vv]|(?i:version)\W{{1,4}})?"
    rf"(?P<place>(?://|[@\[]|\b(?i:ip|addr|address|host|from|to|at|via)[\s=:]{{1,2}})?)"
    rf"(?<![\d.])(?P<ip>{_NUMBER}(?:\.{_NUMBER}){{3}})(?![\d.]*\d)(?P<port>:\d)?"
)
# Four short numbers are a version more often than an address: acme 1.2.3.4
_LIKE_VERSION = re.compile(r"\d(?:\.\d\d?){3}")
_EXAMPLE_ADDRESS = "192.0.2.1"
_LONG_WORD = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,512}(?![\w+/-])")
# Letters, capitals and digits follow each other by chance in 6 of 10 places, in words in 3.
_RANDOM = 0.38


def _without_address(found: re.Match[str]) -> str:
    is_placed = found["place"] or found["port"]
    if found["version"] or (not is_placed and _LIKE_VERSION.fullmatch(found["ip"])):
        return found[0]
    return f"{found['place']}{_EXAMPLE_ADDRESS}{found['port'] or ''}"


def _without_random(found: re.Match[str]) -> str:
    word = found[0]
    sorts = [(one.islower(), one.isupper(), one.isdigit()) for one in word]
    changes = sum(one != other for one, other in pairwise(sorts))
    is_mixed = all(map(any, zip(*sorts, strict=True)))
    return MASK if is_mixed and changes >= _RANDOM * len(word) else word


# Personal data, which say nothing about a failure.
_PERSONAL: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # "/Users/Alice Smith"   /Users/Alice Smith/proj   C:\\Users\\alice   %2Fhome%2Falice
    (
        re.compile(
            rf"(?i)((?<=[\"'])(?:[a-z]:)?{_HOME})[^/\\\"'\n]{{1,64}}(?=\\{{0,3}}[\"'])"
            rf"|({_HOME})(?:{_NAME}(?:\\? {_NAME}){{0,3}}(?={_SEPARATOR})|{_NAME})"
        ),
        r"\1\2user",
    ),
    # -home-alice-proj   C--Users-alice-proj: Claude's folders of projects
    (re.compile(r"((?<![\w-])(?:-|[A-Za-z]--)(?:home|Users)-)[\w.-]{1,200}"), r"\1user"),
    (
        re.compile(
            r"(?i)\b((?:author|committer|co-authored-by|signed-off-by|reviewed-by|acked-by):\s{1,8}"
            r"|(?:logged|signed) in as:? )[^\s\\\"'<(][^\n\\\"'<(]{0,80}"
        ),
        r"\1user ",
    ),
    # "user_id": "x"   \"account_id\": \"x\"   "user_id": 12   organization_id=x   USER=x
    (re.compile(rf"(?i)({_ID_KEY}\\?[\"']\s?:\s?\\?[\"'])[^\\\"'\n]{{1,200}}"), r"\1[id]"),
    (re.compile(rf"(?i)({_ID_KEY}\\?[\"']\s?:\s?)\d{{1,20}}"), r"\g<1>0"),
    (re.compile(rf"(?i)({_ID_KEY}\s?[:=]\s?)[^\s\\\"',;&}})\]]{{1,200}}"), r"\1[id]"),
    (
        re.compile(
            r"(?i)([\"'](?:user|login|owner|author|assignee|full_?name)\\?[\"']\s?:\s?\\?[\"'])"
            r"[^\\\"'\n]{1,100}"
        ),
        r"\1user",
    ),
    (re.compile(r"\b((?:USER|LOGNAME|USERNAME|HOSTNAME)=)\S{1,64}"), r"\1user"),
    # A mail address, or who is at which machine; not acme@latest, checkout@v4
    (
        re.compile(
            r"(?<![\w.+@/-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){0,8}"
            rf"(?:{_NUMBER}(?:\.{_NUMBER}){{3}}"
            r"|(?!(?:latest|next|beta|main|v\d{1,3})\b)[A-Za-z][\w-]{1,62})\b"
        ),
        "user@example.org",
    ),
    (re.compile(r"\barn:aws[\w-]{0,20}:[^\s\\\"',]{1,400}"), "arn:[id]"),
    (_ADDRESS, _without_address),
    (
        re.compile(
            rf"(?<![\w:.])(?:(?:{_HEX}:){{7}}{_HEX}|(?=[A-Fa-f:]{{0,39}}\d)"
            rf"(?:{_HEX}(?::{_HEX}){{0,6}})?::(?:{_HEX}(?::{_HEX}){{0,6}})?)(?![\w:])"
        ),
        "2001:db8::1",
    ),
    (re.compile(r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b"), "[id]"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[id]"),
    # toolu_01AbC…, session_…, thread_…: a word and what no person would write
    (
        re.compile(
            r"\b(?:org|proj|acct|ak)[-_][A-Za-z0-9]{8,64}\b"
            r"|\b(?:req|user|team|session|msg|thread)[-_](?=[A-Za-z]{0,64}\d)[A-Za-z0-9]{8,64}\b"
            r"|\b[a-z]{2,12}[-_](?=[A-Za-z]{0,64}\d)(?=\d{0,64}[A-Za-z])[A-Za-z0-9]{12,64}\b"
        ),
        "[id]",
    ),
    (re.compile(r"(?i)\b(?=\d{0,512}[a-f])(?=[a-f]{0,512}\d)[0-9a-f]{16,512}\b"), "[id]"),
    # An account of AWS; a number for a number, as JSON may contain it.
    (re.compile(r"(?<![\w.])\d{12}(?![\w.])"), "123456789012"),
    (_LONG_WORD, _without_random),
)


def masked_sample(text: str) -> str:
    """The end of `text` without secrets, names of people, addresses and ids.

    Masked before it is cut: half a secret may no longer look like one.
    """
    if len(text) > _MASKED:
        text = text[-_MASKED:]
        # From a whole line on, or else from a whole word on.
        parts = (text.partition(mark)[2] for mark in "\n ")
        text = next((part for part in parts if part.strip()), "")
    return "\n".join(_masked(printable(text)).split("\n")[-_MOST_LINES:])[-_MOST:]


def _masked(text: str) -> str:
    text = mask(text)
    for pattern, instead in _PERSONAL:
        text = pattern.sub(instead, text)
    return text


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
@click.option(
    "--expected-reset",
    type=DURATION,
    default=None,
    metavar="TIME",
    help="How long from now the limit really lasts: 2h, 45m.",
)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Write it to this file.")
@click.argument("file", type=click.File("rb"), default="-")
def command(  # noqa: PLR0917 -- click passes options by name
    agent: str,
    exit_code: int | None,
    expected: str | None,
    expected_reset: float | None,
    out: Path | None,
    file: BinaryIO,
) -> None:
    """Write a masked sample of output that Mulligan misread, to send with a bug report.

    FILE contains the program's output; standard input by default. The sample is one line of JSON:
    the last 80 lines without secrets, names of users, addresses and ids, and how Mulligan
    classified the whole output. A warning says if it classifies the sample otherwise. Nothing is
    sent: read the sample before you send it.
    """
    packs = load_packs().packs
    check_agent(agent, packs)
    now, zone = time.time(), local_zone()
    printed = output_in(file)
    read = partial(read_output, packs=packs, now=now, zone=zone)
    name = agent or (read(printed.head).agent if printed.head else "")
    outcome = read(printed.text, agent=name, exit_code=exit_code)
    text = masked_sample(printed.text)
    again = read(text, agent=name or outcome.agent, exit_code=exit_code)
    sample = {
        "id": sha256(text.encode()).hexdigest()[:12],
        "text": text,
        "label": expected,
        "expected_seconds": expected_reset,
        "agent": name or outcome.agent or None,
        "exit_code": exit_code,
        "now": datetime.fromtimestamp(now, UTC).astimezone(zone).isoformat(timespec="seconds"),
        "local_tz": zone.key if isinstance(zone, ZoneInfo) else None,
        "kind": None if outcome.failure is None else str(outcome.failure.kind),
        "reset_in": None if outcome.reset is None else round(outcome.reset.seconds, 3),
        "confidence": str(outcome.confidence),
        "source": outcome.source or None,
        "model": (outcome.failure.model or None) if outcome.failure is not None else None,
        "because": _masked(outcome.because),
        "mulligan": version("mulligan"),
    }
    line = json.dumps(sample, ensure_ascii=False)
    if out is None:
        click.echo(line)
    else:
        try:
            out.write_text(line + "\n", encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None
        click.echo(f"wrote {out}: read it before you send it", err=True)
    if (whole := _read_as(outcome)) != (part := _read_as(again)):
        click.echo(f"warning: the sample is read as {part}, the whole output as {whole}", err=True)


def _read_as(outcome: Outcome) -> str:
    """What is compared: kind and reset."""
    if outcome.failure is None:
        return "not a failure"
    reset = (
        "" if outcome.reset is None else f" that resets in {duration_text(outcome.reset.seconds)}"
    )
    return f"{outcome.failure.kind}{reset}"

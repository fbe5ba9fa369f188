"""`mulligan faults`: a fake provider that fails on command."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ...core.redaction import presentable
from ...errors import FileError, SettingError
from ...faults.client_settings import POINTERS
from ...faults.file import FaultSettings, read_toml
from ...faults.ledger import LedgerEntry, Totals
from ...faults.limits import ClientLimits
from ...faults.remote import DEFAULT_PORT, address, ask
from ...faults.script import Script
from ...faults.server import FaultServer
from ..ui.faults import (
    WIDE,
    PrinterThread,
    everywhere,
    ledger_table,
    menu_table,
    pointers,
    request_line,
    shell_lines,
    totals_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("command",)

_URL = click.option(
    "--url",
    metavar="URL",
    help=f"Where the server is. [$MULLIGAN_FAULTS_URL, else http://127.0.0.1:{DEFAULT_PORT}]",
)


_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 -- only compared


class _Faults(click.Group):
    """A group whose first word may be a script: `mulligan faults 429x2,ok` serves."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in {*self.commands, "-h", "--help"}:
            args = ["serve", *args]
        # A window may begin with its end, -5s:529, and is not an option then.
        for arg in args:
            if re.match("-[0-9]", arg) and "--" not in args:
                args = [*(each for each in args if each is not arg), "--", arg]
                break
        return super().parse_args(ctx, args)


class _ScriptType(click.ParamType[Script]):
    """A script, refused where it is written wrong."""

    name = "script"

    def convert(
        self, value: str | Script, param: click.Parameter | None, ctx: click.Context | None
    ) -> Script:
        try:
            return value if isinstance(value, Script) else Script.parse(value)
        except SettingError as error:
            refused = click.BadParameter(str(error), ctx=ctx, param=param)
            refused.hint = "mulligan faults menu lists every fault"  # type: ignore[attr-defined]  # read by `cli.main`
            raise refused from None


_FILE = click.option(
    "--file",
    "-f",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read rules, limits and more from a TOML file.",
)
_LIMIT_OPTIONS = (
    click.option("--limit", metavar="N/TIME", help="Requests allowed per client: 50/60s."),
    click.option("--token-limit", metavar="N/TIME", help="Tokens allowed per client: 40000/60s."),
    click.option(
        "--counting",
        type=click.Choice(["bucket", "fixed", "sliding"]),
        help="How a limit is counted.  [default: bucket]",
    ),
    click.option(
        "--count-refusals", is_flag=True, help="Count refused requests against the limit."
    ),
)


def _limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `LimitOptions` holds."""
    for option in reversed(_LIMIT_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """The options about limits, as they were given."""

    limit: str | None
    token_limit: str | None
    counting: str | None
    count_refusals: bool

    @property
    def parsed(self) -> ClientLimits | None:
        """The limits; None if no option speaks of any."""
        if self.limit is None and self.token_limit is None:
            if self.counting is not None or self.count_refusals:
                raise click.UsageError(
                    "--counting and --count-refusals need a --limit or a --token-limit"
                )
            return None
        return ClientLimits.parse(
            requests=self.limit,
            tokens=self.token_limit,
            counting=self.counting or "bucket",
            counts_refusals=self.count_refusals,
        )


_SCRIPT = click.argument("script", required=False, type=_ScriptType())


@click.group(cls=_Faults, options_metavar="", subcommand_metavar="[SCRIPT | COMMAND] [OPTIONS]")
def command() -> None:
    """A fake provider on loopback that fails on command.

    To SDKs, programs and plain HTTP clients it looks like Anthropic, OpenAI, Gemini or a REST
    API. Without a COMMAND it serves; SCRIPT says how each request is answered:

    \b
      429x2,529,ok         two 429, one 529, then ok
      503:0.3,ok           three in ten are 503
      0-15s:overloaded,ok  overloaded for the first fifteen seconds
      plan(15s)            a plan's limit that resets in fifteen seconds
      @a -> hang; ok       one client hangs, the others get ok

    `mulligan faults menu` lists every fault, `mulligan faults serve --help` every option.
    """  # noqa: D301 -- click's own mark for lines that stay as they are


@command.command()
@_SCRIPT
@_FILE
@click.option(
    "--port",
    "-p",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    default=DEFAULT_PORT,
    show_default=True,
    help="The port; 0 picks a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to bind.")
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Another name to accept in the Host header."
)
@click.option("--seed", type=int, help="Seed of the random numbers. [default: 0]")
@_limit_options
@click.option("--text", metavar="TEXT", help="The text of a good answer.")
@click.option("--quiet", "-q", is_flag=True, help="Do not print a line per request.")
@click.option("--json", "as_json", is_flag=True, help="Print address and requests as JSON lines.")
def serve(  # noqa: PLR0917 -- click passes options by name
    script: Script | None,
    path: Path | None,
    port: int,
    host: str,
    allow_host: tuple[str, ...],
    seed: int | None,
    text: str | None,
    quiet: bool,  # noqa: FBT001 -- click passes flags by name
    as_json: bool,  # noqa: FBT001 -- click passes flags by name
    **limits: Any,
) -> None:
    """Serve until Ctrl-C. SCRIPT is `ok` by default; with --file it applies where no rule does."""
    known = FaultSettings() if path is None else read_toml(_read(path), file=str(path))
    if script is not None:
        known = replace(known, rest=script)
    talk = Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDE)
    _allow_many_connections()

    lines = PrinterThread()

    def hears(entry: LedgerEntry) -> None:
        if as_json:
            lines.add(lambda: click.echo(json.dumps(entry.as_json())))
        elif not quiet:
            lines.add(lambda: talk.print(request_line(entry, talk.width), soft_wrap=True))

    server = FaultServer(
        known.script or "ok",
        limits=_merged(known.limits, LimitOptions(**limits).parsed),
        seed=seed if seed is not None else known.seed or 0,
        text=text if text is not None else known.text,
        host=host,
        port=port,
        allowed_hosts=allow_host,
        resources=("invoices",) if known.resources is None else known.resources,
        honours_keys=known.honours_keys is not False,
        hears=hears,
    )
    # Before the address is printed: its reader may send the signal at once.
    told = _told_to_stop()
    with server:
        script_text = str(server.script)
        greeting = list(pointers(server.url, server.key("me"), script_text))
        if as_json:
            greeting = [json.dumps({"url": server.url, "script": script_text})]
        click.echo("\n".join(greeting))
        sys.stdout.flush()
        if host in _EVERYWHERE:
            lines.add(lambda: talk.print(everywhere(server.port, allow_host), soft_wrap=True))
        told.wait()
        totals = server.totals
    if lines.dropped:
        lines.add(
            lambda: talk.print(f"{lines.dropped} lines were dropped: the output was not read")
        )
    if not as_json:
        lines.add(lambda: talk.print(f"\nstopped: {totals_line(totals)}"))
    if not lines.close():
        os._exit(0)  # the thread is blocked by a pipe without a reader; joining it would block, too


@command.command(name="set")
@_SCRIPT
@_FILE
@_limit_options
@_URL
def set_(script: Script | None, path: Path | None, url: str | None, **limits: Any) -> None:
    """Give a running server another script, other limits or both, from the next request on."""
    body = _as_toml(None if script is None else str(script), LimitOptions(**limits))
    if bool(body) == (path is not None):
        raise click.UsageError("needs a SCRIPT, a --limit or a --file")
    if path is not None:
        body = _read(path)
        read_toml(body, file=str(path))  # a mistake is reported with the file's name
    kind = "application/toml"
    said = ask(address(url), "/_script", names="script", method="POST", body=body, kind=kind)
    click.echo(presentable(str(said["script"]), 10_000))


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option("--last", "-n", type=click.IntRange(1), metavar="N", help="Only the last N requests.")
@click.option(
    "--all", "shows_all", is_flag=True, help="Include models, token counts and telemetry."
)
@click.option("--clear", is_flag=True, help="Clear the ledger after showing it.")
@_URL
def ledger(
    as_json: bool,  # noqa: FBT001 -- click passes flags by name
    last: int | None,
    shows_all: bool,  # noqa: FBT001 -- click passes flags by name
    clear: bool,  # noqa: FBT001 -- click passes flags by name
    url: str | None,
) -> None:
    """Show every request and every effect, with their totals."""
    where = address(url)
    said = ask(where, "/_ledger", names="entries")
    if as_json:
        click.echo(json.dumps(said, indent=2))
    else:
        every = [LedgerEntry(**each) for each in said["entries"]]
        entries = [entry for entry in every if shows_all or entry.vendor != "other"]
        width = None if sys.stdout.isatty() else WIDE
        console = Console(width=width, highlight=False)
        console.print(ledger_table(entries[-(last or len(entries)) :], console.width))
        console.print(totals_line(Totals(**said["totals"])))
    if clear:
        ask(where, "/_ledger", names="requests", method="DELETE")


@command.command()
@click.argument("program", metavar="PROGRAM", type=click.Choice([each.name for each in POINTERS]))
@click.option(
    "--client", default="me", show_default=True, help="The name of the client in the ledger."
)
@_URL
def env(program: str, client: str, url: str | None) -> None:
    """Print the environment that PROGRAM needs: eval "$(mulligan faults env claude)".

    PROGRAM is anthropic, openai, google-genai, litellm, claude, claude-plan, codex, gemini,
    opencode, qwen or copilot.
    """
    for line in shell_lines(program, address(url), f"mulligan-{client}"):
        click.echo(line)


@command.command()
def menu() -> None:
    """List every fault that a script can contain."""
    width = None if sys.stdout.isatty() else 120
    Console(width=width, highlight=False).print(menu_table())


def _allow_many_connections() -> None:
    """Raise the soft limit of open files to the hard one: tests connect thousands of clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS says that it has no limit, then refuses more than this.
    most = 10_240 if hard == resource.RLIM_INFINITY else hard
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _told_to_stop() -> threading.Event:
    """An event that Ctrl-C or SIGTERM sets: both stop the server normally."""
    told = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: told.set())
    return told


def _merged(file: ClientLimits | None, options: ClientLimits | None) -> ClientLimits:
    """The limits of both; for requests and for tokens, the option wins."""
    if file is None or options is None:
        return options or file or ClientLimits()
    return replace(
        options,
        requests=options.requests or file.requests,
        tokens=options.tokens or file.tokens,
        counts_refusals=options.counts_refusals or file.counts_refusals,
    )


def _as_toml(script: str | None, options: LimitOptions) -> str:
    """Options as a file would have them: what a running server is sent."""
    _ = options.parsed  # a mistake is reported here, in the words of the options
    lines = [] if script is None else [f"script = {_string(script)}"]
    limits: dict[str, str | None] = {
        "requests": options.limit,
        "tokens": options.token_limit,
        "counting": options.counting,
    }
    pairs = [f"{name} = {_string(value)}" for name, value in limits.items() if value is not None]
    if options.count_refusals:
        pairs.append("counts_refusals = true")
    return "\n".join([*lines, *(["[limits]", *pairs] if pairs else [])])


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for a character above U+FFFF; unescaped both agree on it.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> str:
    """The file as it stands."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read: {error}", file=str(path)) from None

"""Settings of `mulligan faults`, from options and from a file.

An option wins over the file, each for itself. What would have no effect is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from ..errors import FileError
from ..faults.file import FaultSettings, read_toml
from ..faults.limits import ClientLimits

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = (
    "LimitOptions",
    "file_option",
    "limit_options",
    "merged",
    "read_file",
    "read_text",
    "written",
)

P = ParamSpec("P")
T = TypeVar("T")

file_option = click.option(
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


def limit_options(function: Callable[P, T]) -> Callable[P, T]:
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


def merged(file: ClientLimits | None, options: ClientLimits | None) -> ClientLimits:
    """The limits of both; for requests and for tokens, the option wins."""
    if file is None or options is None:
        return options or file or ClientLimits()
    return replace(
        options,
        requests=options.requests or file.requests,
        tokens=options.tokens or file.tokens,
        counts_refusals=options.counts_refusals or file.counts_refusals,
    )


def written(script: str | None, options: LimitOptions) -> str:
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


def read_file(path: Path | None) -> FaultSettings:
    """What the file says; without one, nothing."""
    return FaultSettings() if path is None else read_toml(read_text(path), file=str(path))


def read_text(path: Path) -> str:
    """The file as it stands."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot be read: {error}", file=str(path)) from None

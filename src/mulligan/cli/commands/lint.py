"""`mulligan lint`: what a plan or a policy gets wrong, before it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..config.lines import line_of, path_of
from ..config.source import read
from ..core.text import clean
from ..errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..config.lint import Finding
    from ..config.source import Source

__all__ = ("command",)


class _Said(NamedTuple):
    """One line of the answer."""

    file: str
    line: int | None
    level: str
    key: str
    message: str
    hint: str


@click.command(
    "lint",
    epilog="Nothing is executed, and only the files that are named are read, with the prompt files "
    "of a plan. Exit codes: 0 nothing but warnings, 1 errors, 2 wrong usage.",
)
@click.argument("files", metavar="FILE.toml…", nargs=-1, required=True)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object a line.")
def command(files: tuple[str, ...], *, is_json: bool) -> int:
    """Check plans and policies: errors do harm or keep it from being run.

    \b
    mulligan lint review.toml         what is wrong with it, what has no effect
    mulligan lint --json *.toml       the same for programs

    What has phases is a plan, everything else a policy.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    has_errors = False
    for file in files:
        found = _looked_at(file)
        has_errors = has_errors or any(each.level == "error" for each in found)
        for each in found:
            click.echo(json.dumps(each._asdict()) if is_json else _text(each))
        if not found and not is_json:
            click.echo(f"{clean(file)}: nothing to say")
    return int(has_errors)


def _looked_at(file: str) -> list[_Said]:
    try:
        source = read(file)
        return _said(source, _findings(source, Path(file)))
    except FileError as error:
        return [_Said(error.file, error.line, "error", error.key, error.message, error.hint)]


def _findings(source: Source, file: Path) -> Iterable[Finding]:
    if "phases" in source.data:
        from ..run.plan_file import plan_from
        from ..run.plan_lint import lint_plan

        return lint_plan(plan_from(source, name=file.stem), folder=file.parent)
    from ..config.lint import lint
    from ..config.loader import policy_from

    return lint(policy_from(source, name=file.stem))


def _said(source: Source, findings: Iterable[Finding]) -> list[_Said]:
    return [
        _Said(
            source.file,
            line_of(source.text, path_of(each.key)),
            "error" if each.is_grave else "warning",
            each.key,
            clean(each.message, 1000),
            clean(each.hint, 1000),
        )
        for each in findings
    ]


def _text(said: _Said) -> str:
    place = said.file if said.line is None else f"{said.file}:{said.line}"
    key = f"{said.key}: " if said.key else ""
    hint = f"\n  hint: {said.hint}" if said.hint else ""
    return f"{place}: {said.level}: {key}{said.message}{hint}"

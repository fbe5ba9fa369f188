"""`mulligan lint`: errors and warnings in plans and policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ...config.lines import line_of, path_of
from ...config.source import read
from ...core.redaction import clean
from ...errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...config.lint import PolicyFinding
    from ...config.source import Source

__all__ = ("command",)


class _Finding(NamedTuple):
    file: str
    line: int | None
    level: str
    key: str
    message: str
    hint: str


@click.command(
    "lint",
    epilog=(
        "Nothing is executed, and only the given files and the prompt files of a plan "
        "are read. Exit codes: 0 no errors, perhaps warnings, 1 errors, 2 wrong usage."
    ),
)
@click.argument("files", metavar="FILE.toml…", nargs=-1, required=True)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object per line.")
def command(files: tuple[str, ...], *, is_json: bool) -> int:
    """Check plans and policies for errors and warnings.

    \b
    mulligan lint review.toml         errors, and settings without effect
    mulligan lint --json *.toml       the same as JSON

    A file with phases is a plan, any other file a policy.
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    has_errors = False
    for file in files:
        found = _looked_at(file)
        has_errors = has_errors or any(each.level == "error" for each in found)
        for each in found:
            click.echo(json.dumps(each._asdict()) if is_json else _text(each))
        if not found and not is_json:
            click.echo(f"{clean(file)}: no problems found")
    return int(has_errors)


def _looked_at(file: str) -> list[_Finding]:
    try:
        source = read(file)
        findings = _findings(source, Path(file))
    except FileError as error:
        return [_Finding(error.file, error.line, "error", error.key, error.message, error.hint)]
    return [
        _Finding(
            source.file,
            line_of(source.text, path_of(each.key)),
            "error" if each.is_grave else "warning",
            each.key,
            clean(each.message, 1000),
            clean(each.hint, 1000),
        )
        for each in findings
    ]


def _findings(source: Source, file: Path) -> Iterable[PolicyFinding]:
    if "phases" in source.data:
        from ...run.plan.lint import lint_plan
        from ...run.plan.load import plan_from

        return lint_plan(plan_from(source, name=file.stem), folder=file.parent)
    from ...config.lint import lint
    from ...config.loader import policy_from

    return lint(policy_from(source, name=file.stem))


def _text(found: _Finding) -> str:
    place = found.file if found.line is None else f"{found.file}:{found.line}"
    key = f"{found.key}: " if found.key else ""
    hint = f"\n  hint: {found.hint}" if found.hint else ""
    return f"{place}: {found.level}: {key}{found.message}{hint}"

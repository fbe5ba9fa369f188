"""Help pages with groups of options and extra sections."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("Manual",)


class Manual(click.Command):
    """A command whose help has groups of options, by title, and more sections behind them.

    Options in no group come last, under *Options*. A section has rows of (term, explanation).
    """

    def __init__(
        self,
        *args: Any,
        groups: Mapping[str, Sequence[str]] = MappingProxyType({}),
        sections: Mapping[str, Sequence[tuple[str, str]]],
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self._groups, self._sections = groups, sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {
            param.opts[-1]: row
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)) is not None
        }
        for title, names in self._groups.items():
            with formatter.section(title):
                formatter.write_dl([rows.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(rows.values()))
        for title, terms in self._sections.items():
            with formatter.section(title):
                formatter.write_dl(terms)

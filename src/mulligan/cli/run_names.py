"""Finds the run that an argument names: by id, prefix or name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..run.journal.store import RunStore

__all__ = ("RUN", "RunName", "newest")

# A shell that hangs while it completes is worse than one that offers less.
_MOST = 50


class RunName(click.ParamType[str]):
    """A run: its id, a prefix of it, or its name; with `is_open` only open ones are offered."""

    name = "run"

    def __init__(self, *, is_open: bool = False) -> None:
        self._is_open = is_open

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click's signature
        param: click.Parameter,  # noqa: ARG002 -- click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            return [
                CompletionItem(word, help=about)
                for word, about in self._offered()
                if word.startswith(incomplete)
            ][:_MOST]
        except Exception:  # noqa: BLE001 -- nothing to offer; a shell has nowhere to show an error
            return []

    def _offered(self) -> list[tuple[str, str]]:
        from ..run.journal.store import RunStore

        offered = []
        for id_, state in RunStore().all():
            if self._is_open and state.status in {"done", "cancelled"}:
                continue
            about = f"{state.status}: {state.made.command}"
            offered += [(word, about) for word in (id_, state.made.name) if word]
        return offered


RUN: Any = RunName()


def newest(runs: RunStore) -> str:
    """The newest run there is; empty if there is none."""
    return next((id_ for id_, _ in runs.all()), "")

"""Completion of option values: runs, programs, presets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

__all__ = ("agents", "policies")


def agents(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Programs that are known."""
    from ...run.agents.catalogue import known

    return [name for name in (*known(), "generic") if name.startswith(incomplete)]


def policies(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Presets, or files where no preset begins like that."""
    from click.shell_completion import CompletionItem

    from ...core.presets import PRESETS

    names = [CompletionItem(name) for name in PRESETS if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]

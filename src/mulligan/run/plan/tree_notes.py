"""What there is to say about the changes that were taken from an agent's own tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.redaction import clean

if TYPE_CHECKING:
    from ..git import TakenBack

__all__ = ("said_of",)

# How many of the files that git does not hold are named.
_FEW = 3


def said_of(taken: TakenBack, key: str) -> tuple[str, list[str]]:
    """Why they did not come, if they did not, and what else there is to say.

    Args:
        taken: What came.
        key: The agent, as git knows it: ``RUN/agents/NAME``.
    """
    said = [f"git: left {each.path}: {each.reason}" for each in taken.left[:_FEW]]
    if taken.folder:
        rest = f"{len(taken.left) - _FEW} more, and " if len(taken.left) > _FEW else ""
        forget = f"mulligan git drop --force {key}"
        said.append(f"git: {rest}its folder stays: {taken.folder}; {forget} removes it")
    if taken.branch:
        said.append(f"git: its changes are on the branch {taken.branch}")
    return clean(_trouble(taken, key)), [clean(each) for each in said]


def _trouble(taken: TakenBack, key: str) -> str:
    if taken.given is not None and taken.given.conflicts:
        first, *more = taken.given.conflicts
        others = f" and {len(more)} more" if more else ""
        return (
            f"{first.path}{others} conflicts with the tree: {first.reason}; "
            f"merge the branch {taken.branch}, or delete it"
        )
    if taken.is_gone:
        merge = f"merge the branch {taken.branch}, or " if taken.branch else ""
        return (
            f"its tree is gone, removed while it worked: what was not committed is lost; "
            f"{merge}forget it with mulligan git drop {key}"
        )
    return ""

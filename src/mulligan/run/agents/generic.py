"""The adapter for unknown programs: started as they are, their output is not interpreted.

Every ``mulligan run -- true`` imports this module, so it imports almost nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import LaunchRequest, OutputReader, Stream

__all__ = ("PROGRAM", "GenericAdapter")


class GenericAdapter:
    """Adds no flags, has no sessions and no idle limit, and trusts the exit code."""

    __slots__ = ()

    name = "generic"
    can_resume = False
    idle: float | None = None
    is_exit_trusted = True
    is_end_reported = False
    variables: tuple[str, ...] = ()

    def start(self, command: tuple[str, ...], wish: LaunchRequest, /) -> Launch:  # noqa: ARG002 -- the port's
        return Launch(argv=command)

    def resume(self, command: tuple[str, ...], session: str, wish: LaunchRequest, /) -> Launch:  # noqa: ARG002 -- the port's
        """Start the same command: there is no session to resume."""
        return Launch(argv=command)

    def reader(self, launch: Launch, /) -> OutputReader:  # noqa: ARG002 -- the port's
        return NullReader()

    def account(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> None:
        """None: the provider and credential of an unknown program are not known."""


class NullReader:
    """A reader that returns no notes."""

    __slots__ = ()

    def line(self, stream: Stream, line: bytes, /) -> None:
        """Always None."""

    def end(self) -> None:
        """Always None."""


PROGRAM = GenericAdapter()

"""The adapter for unknown programs: started as they are, their output is not interpreted.

It is on the path of every ``mulligan run -- true``, so it imports next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import LaunchRequest, OutputReader, Stream

__all__ = ("PROGRAM", "GenericAdapter")


class GenericAdapter:
    """No flags, no sessions; silence means nothing, and its exit code is believed."""

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
        """The same again: there is no session to go on with."""
        return Launch(argv=command)

    def reader(self, launch: Launch, /) -> OutputReader:  # noqa: ARG002 -- the port's
        return NullReader()

    def account(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> None:
        """It may ask anybody, with any credential."""

    def model(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> str:  # noqa: ARG002 -- the port's
        return ""


class NullReader:
    """Sees nothing in any line."""

    __slots__ = ()

    def line(self, stream: Stream, line: bytes, /) -> None:
        """Nothing is known of it."""

    def end(self) -> None:
        """Nothing is left to tell."""


PROGRAM = GenericAdapter()

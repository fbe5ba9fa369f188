"""A program that nobody knows: started as it is, read by nobody.

It is on the path of every ``mulligan run -- true``, so it imports next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .adapter import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import Reader, Stream, Wish

__all__ = ("PROGRAM", "Generic")


class Generic:
    """No flags, no sessions; silence means nothing, and its exit code is believed."""

    __slots__ = ()

    name = "generic"
    can_resume = False
    idle: float | None = None
    is_exit_trusted = True
    is_end_reported = False

    def start(self, command: tuple[str, ...], wish: Wish, /) -> Launch:  # noqa: ARG002 -- the port's
        return Launch(argv=command)

    def resume(self, command: tuple[str, ...], session: str, wish: Wish, /) -> Launch:  # noqa: ARG002 -- the port's
        """The same again: there is no session to go on with."""
        return Launch(argv=command)

    def reader(self, launch: Launch, /) -> Reader:  # noqa: ARG002 -- the port's
        return Blind()

    def account(self, environ: Mapping[str, str], /) -> str:  # noqa: ARG002 -- the port's
        return ""


class Blind:
    """Sees nothing in any line."""

    __slots__ = ()

    def line(self, stream: Stream, line: bytes, /) -> None:
        """Nothing is known of it."""

    def end(self) -> None:
        """Nothing is left to tell."""


PROGRAM = Generic()

"""The interface between a run and an agent program: start, resume, read its output.

An adapter builds the command line (structured output, a session that can be resumed) and reads
output lines while the program runs. It does not judge how the run ended: `classify` reads that from
the whole output, for all programs. Every ``mulligan run -- true`` imports this module, so it
imports almost nothing itself.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...errors import MulliganError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .accounts import AgentAccount

__all__ = (
    "GENERIC",
    "AgentAdapter",
    "CommandRefused",
    "Launch",
    "LaunchRequest",
    "OutputNote",
    "OutputReader",
    "Stream",
)

Stream = Literal["stdout", "stderr"]

_NONE: Mapping[str, str] = MappingProxyType({})


class CommandRefused(MulliganError):
    """A command that cannot be run unattended: why, and what to write instead."""

    def __init__(self, because: str, hint: str = "") -> None:
        self.because, self.hint = because, hint
        super().__init__(because)


class LaunchRequest(NamedTuple):
    """What the runner asks an adapter for when it starts the program.

    Args:
        session: An id for a new session, if the program lets us choose it: a UUID never used
            before, because Gemini refuses a used one.
        own_retries: How often the program may retry by itself; None for the adapter's default.
        environ: The environment that the program will inherit; the adapter does not change it.
        prompt: The prompt for a resumed session; empty for the default one.
        pending: The tool calls that were under way when the session was interrupted, in words.
    """

    session: str = ""
    own_retries: int | None = None
    environ: Mapping[str, str] = _NONE
    prompt: str = ""
    pending: str = ""


class Launch(NamedTuple):
    """One start of the program.

    Args:
        argv: The command to execute, program first.
        environ: Variables to set on top of the inherited ones.
        session: The session id that we chose; empty if the program chooses.
        is_translated: Whether we switched stdout to structured output, so that the user sees what
            the reader shows instead of the raw bytes.
        is_structured: Whether stdout is a stream of events, requested by us or by the user.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str] = _NONE
    session: str = ""
    is_translated: bool = False
    is_structured: bool = False


class OutputNote(NamedTuple):
    """What a line of output says while the program runs.

    Args:
        session: The id of the session under way, if it is new; only ids that fit the adapter's
            pattern.
        is_retry: Whether the program says that it tries again by itself.
        reason: The reason that the program printed in its retry message; empty if a structured
            event carries it in its fields.
        quiet: Seconds of silence that the program announced.
        is_work: Whether a model has answered.
        pending: The tool calls that are under way after this line, in words; None if that did
            not change.
        cost: US dollars that this attempt has cost so far.
        tokens: Tokens that this attempt has used so far, in and out.
        shown: What the user would have seen of it: (stream, text) in order.
        is_lost: Whether the program reports that the session to resume does not exist. Nothing was
            saved, so a restart repeats no work. Never set after work in the same attempt.
        is_futile: Whether the program repeats paid requests that cannot succeed; the supervisor
            stops it.
        is_event: Whether this line was the first event on stdout, which proves that the output is
            structured.
    """

    session: str = ""
    is_retry: bool = False
    reason: str = ""
    quiet: float = 0.0
    is_work: bool = False
    pending: tuple[str, ...] | None = None
    cost: float | None = None
    tokens: int | None = None
    shown: Sequence[tuple[Stream, str]] = ()
    is_lost: bool = False
    is_futile: bool = False
    is_event: bool = False


class OutputReader:
    """Reads one attempt's output, line by line; this one finds nothing in it.

    Never raises on malformed output.
    """

    def __init__(self, launch: Launch) -> None: ...

    def line(self, stream: Stream, line: bytes, /) -> OutputNote | None:  # noqa: ARG002 -- for subclasses
        """The note for `line`, given without its newline; None if it says nothing."""
        return None

    def end(self) -> OutputNote | None:
        """The last note, after the end of the output."""
        return None


class AgentAdapter:
    """One program; this one is for those that are unknown: started as they are, not interpreted.

    Args:
        reader: Makes the reader of an attempt's output.

    Attributes:
        name: The program's name in pattern packs: ``claude``; ``generic`` for unknown programs.
        can_resume: Whether an interrupted session can be resumed.
        idle: Seconds without a sign of life after which it counts as hung; None for no limit.
        is_exit_trusted: Whether exit code 0 means success, unless its structured output says
            otherwise.
        is_end_reported: Whether its structured output always ends with a report of how it ended.
    """

    name = "generic"
    can_resume = False
    idle: float | None = None
    is_exit_trusted = True
    is_end_reported = False

    def __init__(self, reader: Callable[[Launch], OutputReader] = OutputReader) -> None:
        self.reader = reader

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that hold its keys, or say where its sessions are."""
        return ()

    def start(self, command: tuple[str, ...], wish: LaunchRequest, /) -> Launch:  # noqa: ARG002 -- for subclasses
        """How to start `command` from the beginning.

        Raises:
            CommandRefused: It is interactive, or cannot be run unattended for another reason.
        """
        return Launch(argv=command)

    def resume(self, command: tuple[str, ...], session: str, wish: LaunchRequest, /) -> Launch:  # noqa: ARG002 -- for subclasses
        """How to resume `session` of `command`: the same flags, another prompt.

        The first attempt has already read stdin, so a resumed program gets an empty one. A program
        without sessions is started again.
        """
        return Launch(argv=command)

    def account(
        self,
        command: tuple[str, ...],  # noqa: ARG002 -- for subclasses
        environ: Mapping[str, str],  # noqa: ARG002 -- for subclasses
        /,
    ) -> AgentAccount | None:
        """The account and the model that the program uses; None for an unknown program."""
        return None


GENERIC = AgentAdapter()

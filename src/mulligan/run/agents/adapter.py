"""The interface between a run and an agent program: start, resume, read its output.

An adapter is asked twice: how to start the program so that it can be understood and resumed, and
what a line of its output says while it runs. How a run ended is not asked here: `classify` reads
that from the whole output, for all programs alike.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ...errors import MulliganError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .accounts import AgentAccount

__all__ = (
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
    """A command that cannot be run unattended.

    Args:
        because: What was asked and what is wrong with it.
        hint: What to write instead.
    """

    def __init__(self, because: str, hint: str = "") -> None:
        self.because, self.hint = because, hint
        super().__init__(because)


class LaunchRequest(NamedTuple):
    """What the run wants of a start.

    Args:
        session: An id for a new session, where the program lets us choose: a UUID that no start
            before has used, or Gemini refuses it.
        own_retries: How often the program may retry by itself; None for what is good for it.
        environ: The environment it will inherit; read, never changed.
        prompt: What to tell a session that goes on; empty for the usual words.
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
        argv: What to execute; the first is the program.
        environ: Variables to set on top of the inherited ones.
        session: The id that was chosen for it, as far as we chose one.
        is_translated: Whether stdout was made structured by us, so that the user sees what the
            reader shows instead of its bytes.
        is_structured: Whether stdout tells each step as an event: made so by us, or by the user.
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str] = _NONE
    session: str = ""
    is_translated: bool = False
    is_structured: bool = False


class OutputNote(NamedTuple):
    """What a line of output says while the program runs.

    Args:
        session: The id of the session under way; only ids that fit the adapter's pattern.
        is_retry: Whether the program says that it tries again by itself.
        reason: Why it does, in its words, where they stand in the notice; a structured event has
            them in its fields.
        quiet: Seconds for which it announced to be silent.
        is_work: Whether a model has answered: something was achieved.
        pending: The tool calls that are under way after this line, in words; None if that did
            not change.
        cost: US dollars that this attempt has cost so far.
        tokens: Tokens that this attempt has used so far, in and out.
        shown: What the user would have seen of it: (stream, text) in order.
        is_lost: Whether the program says that there is no session to go on with: nothing was saved
            of it, so a new start repeats nothing. Never after work in the same attempt.
        is_futile: Whether it goes on with what leads nowhere, at a price: it is to be ended.
        is_event: Whether this was the first event on stdout: the output is structured.
    """

    session: str = ""
    is_retry: bool = False
    reason: str = ""
    quiet: float = 0.0
    is_work: bool = False
    pending: tuple[str, ...] | None = None
    cost: float | None = None
    tokens: int | None = None
    shown: tuple[tuple[Stream, str], ...] = ()
    is_lost: bool = False
    is_futile: bool = False
    is_event: bool = False


class OutputReader(Protocol):
    """Reads one attempt's output, line by line. Never raises, whatever the bytes."""

    def line(self, stream: Stream, line: bytes, /) -> OutputNote | None:
        """What `line`, without its end, says; None for nothing."""
        ...

    def end(self) -> OutputNote | None:
        """What is still to be told now that the output is over."""
        ...


class AgentAdapter(Protocol):
    """One agent program."""

    @property
    def name(self) -> str:
        """As packs know it: ``claude``; ``generic`` for unknown programs."""
        ...

    @property
    def can_resume(self) -> bool:
        """Whether a session can go on where it stopped."""
        ...

    @property
    def idle(self) -> float | None:
        """Seconds without a sign of life after which it hangs; None where that means nothing."""
        ...

    @property
    def is_exit_trusted(self) -> bool:
        """Whether exit code 0 means success, unless its structured output says otherwise."""
        ...

    @property
    def is_end_reported(self) -> bool:
        """Whether its structured output always ends with a report of how it ended."""
        ...

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that hold its keys, or say where its sessions are."""
        ...

    def start(self, command: tuple[str, ...], wish: LaunchRequest, /) -> Launch:
        """How to start `command` from the beginning.

        Raises:
            CommandRefused: It is interactive, or cannot be run unattended for another reason.
        """
        ...

    def resume(self, command: tuple[str, ...], session: str, wish: LaunchRequest, /) -> Launch:
        """How to go on with `session` of `command`: its flags, another prompt.

        What came by stdin was part of the first prompt; a resumed program gets an empty one.
        """
        ...

    def reader(self, launch: Launch, /) -> OutputReader: ...

    def account(
        self, command: tuple[str, ...], environ: Mapping[str, str], /
    ) -> AgentAccount | None:
        """The account that the program uses; None for an unknown program."""
        ...

    def model(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> str:
        """The model that the command or the environment names; empty for its default."""
        ...

"""One piece of evidence that a program gave about how it ended, and its usual makers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ..bodies import Body, opened, read_body
from .failed_objects import failure_lines

__all__ = ("Event", "Evidence", "Role", "ended", "progress", "role_only")


class Role(Enum):
    """What a piece of evidence says about the run.

    A run is read as a sequence. FAILED stands until WORK or DONE follows it: then it was
    survived. ENDED stands whatever follows but DONE. PROGRESS is the program helping itself.
    """

    FAILED = "failed"
    ENDED = "ended"
    PROGRESS = "progress"
    WORK = "work"
    DONE = "done"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one event, body or line says.

    Args:
        role: What it says about the run.
        text: The message, as it was printed.
        codes: Codes and reasons that stand beside it; matched but not shown.
        source: Where it stood, for people: ``claude result event``.
        agent: The program it gives away, if it does.
        status: An HTTP status.
        code: The vendor's word: ``insufficient_quota``.
        fields: The parsed JSON around it, where reset times may stand under known keys.
        is_limit: Whether the event itself says that a plan's limit was met.
        is_written: Whether a model wrote it: the event counts the tokens of an answer.
        is_event: Whether the program reported it as an event of its own run; False for a body or
            a line, which it may merely have shown.
        is_doubtful: Whether code and answers look like this as often as errors do.
        is_introduced: Whether a heading announced it: "Upstream error:".
        is_fenced: Whether it stands in a block of code.
        line: How many lines stand above it.
    """

    role: Role
    text: str = ""
    codes: tuple[str, ...] = ()
    source: str = ""
    agent: str = ""
    status: int | None = None
    code: str = ""
    fields: object = field(default=None, repr=False)
    is_limit: bool = False
    is_written: bool = False
    is_event: bool = True
    is_doubtful: bool = False
    is_introduced: bool = False
    is_fenced: bool = False
    line: int = 0

    @classmethod
    def of(cls, said: Body, role: Role, source: str, **more: Any) -> Evidence:
        """What an error body says."""
        code = said.code or ""
        told = {"text": said.words, "codes": said.codes, "status": said.status, "code": code}
        return cls(role=role, source=source, **(told | more))


Event = dict[str, Any]


def ended(
    event: Event, inner: object, source: str, agent: str, role: Role = Role.ENDED
) -> Evidence:
    """A failure that `inner` describes; the end of the run unless `role` says less."""
    found = Evidence.of(read_body(inner), role, source, agent=agent, fields=event)
    return found if found.text else replace(found, text="\n".join(failure_lines(event)))


def progress(source: str, agent: str) -> Callable[[Event], Evidence]:
    """A reader of notices: the program is trying again by itself."""

    def read(event: Event) -> Evidence:
        data = event.get("data")
        inner = data if isinstance(data, Mapping) else event
        # The API's answer, if it was kept: its reset holds, the program's own delays do not.
        fields = opened(str(inner.get("errorMessage") or ""))
        return Evidence.of(read_body(inner), Role.PROGRESS, source, agent=agent, fields=fields)

    return read


def role_only(role: Role, agent: str = "") -> Callable[[Event], Evidence]:
    """A reader of events that say nothing but that they happened."""
    return lambda _: Evidence(role=role, agent=agent)

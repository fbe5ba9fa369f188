"""What every reader of events needs: one line for the usual kinds of evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .bodies import error_words, opened, status_of
from .evidence import Evidence, Role

__all__ = ("Event", "ended", "progress", "role_only")

Event = Mapping[str, Any]


def ended(
    event: Event, inner: object, source: str, agent: str, role: Role = Role.ENDED
) -> Evidence:
    """A failure that `inner` describes; the end of the run unless `role` says less."""
    words = error_words(inner)
    return Evidence(
        role=role,
        text=words.text,
        aside=words.aside,
        source=source,
        agent=agent,
        status=status_of(inner),
        code=words.code,
        fields=event,
    )


def progress(source: str, agent: str) -> Callable[[Event], Evidence]:
    """A reader of notices: the program is trying again by itself."""

    def read(event: Event) -> Evidence:
        data = event.get("data")
        inner = data if isinstance(data, Mapping) else event
        words = error_words(inner)
        return Evidence(
            role=Role.PROGRESS,
            text=words.text,
            aside=words.aside,
            source=source,
            agent=agent,
            status=status_of(inner),
            code=words.code,
            # The API's answer, if it was kept: its reset holds, the program's own delays do not.
            fields=opened(str(inner.get("errorMessage") or "")),
        )

    return read


def role_only(role: Role, agent: str = "") -> Callable[[Event], Evidence]:
    """A reader of events that say nothing but that they happened."""
    return lambda _: Evidence(role=role, agent=agent)

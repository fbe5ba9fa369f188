"""Sends events to listeners, and logs what listeners and callbacks raise.

A listener or a callback is the user's code running while the user's error is being handled. What it
raises is logged and dropped: it must not replace that error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.events import EventName
    from .session import Session

__all__ = ("announce", "report", "safely", "warn")


def announce(session: Session, event: EventName, **facts: Any) -> None:
    """Tell the listeners of `session` that this happened to its call."""
    told = _happened(session, event, **facts)
    for listener in session.settings.listeners:
        if event != "Succeeded" or getattr(listener, "successes", False):
            safely("listener", listener, told)


def _happened(session: Session, event: EventName, **facts: Any) -> Any:
    """The event, with what every event says."""
    from ..core import events  # a dozen classes, which a guard without listeners never needs

    call = session.call
    common: dict[str, Any] = {
        "at": session.clock.wall(),
        "target": call.target,
        "name": call.name,
        "request_id": session.context().request_id,
        "attempt": call.attempt,
    }
    return getattr(events, event)(**(common | facts))


def warn(session: Session, event: EventName, **facts: Any) -> None:
    """Log an event that must not pass unseen, for a guard without listeners."""
    safely("warning", session.settings.unheard, _happened(session, event, **facts))


def safely(role: str, function: Callable[..., object], *args: object) -> None:
    """Call the user's function; report what it raises."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 -- reported
        report(role, function, error)


def report(role: str, function: object, error: Exception) -> None:
    """Log that the user's function raised, in words that are fit for a log: no traceback."""
    import logging

    try:
        words = presentable(str(error))
    except Exception:  # noqa: BLE001 -- a __str__ that raises says nothing
        words = ""
    name = getattr(function, "__name__", None) or type(function).__name__
    logging.getLogger("mulligan").error(
        "the %s %s raised %s: %s", role, name, type(error).__name__, words
    )

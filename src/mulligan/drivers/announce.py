"""Telling people what happened, without letting them make it worse.

A listener or a callback is the user's code running while the user's error is on its way. Whatever
it raises is reported and dropped: it must never take the error's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.text import presentable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core.events import Event, Succeeded

__all__ = ("report", "safely", "tell", "tell_success")


def tell(listeners: Iterable[Callable[[Event], None]], event: Event) -> None:
    """Tell every listener of `event`."""
    for listener in listeners:
        safely("listener", listener, event)


def tell_success(listeners: Iterable[Callable[[Event], None]], event: Succeeded) -> None:
    """Tell those who asked for successes."""
    tell((each for each in listeners if getattr(each, "successes", False)), event)


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

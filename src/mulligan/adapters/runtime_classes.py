"""Classes made at run time: views that subclass the client's class, exceptions with two bases."""

from __future__ import annotations

from typing import Any

__all__ = ("runtime_class",)

_made: dict[tuple[type, ...], Any] = {}


def runtime_class(*bases: type, like: type, **body: Any) -> Any:
    """The class with these bases, made once; the first `body` counts.

    Args:
        *bases: In the order of method resolution.
        like: Whose name and module it shows.
        **body: Its attributes.
    """
    found = _made.get(bases)
    if found is None:
        shown = {"__module__": like.__module__, "__doc__": like.__doc__, **body}
        found = _made[bases] = type(like.__name__, bases, shown)
    return found

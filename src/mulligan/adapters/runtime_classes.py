"""Classes of other libraries: which package they are of, and subclasses made at run time.

Those are views, which subclass the client's class, and exceptions with two bases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sender import Sender

__all__ = ("guarded_view", "packages_of", "runtime_class", "view_of")

_made: dict[tuple[type, ...], Any] = {}


def packages_of(thing: object) -> set[str]:
    """The packages of the classes of `thing`; known without importing them."""
    return {each.__module__.partition(".")[0] for each in type(thing).__mro__}


def runtime_class(*bases: type, like: type, **body: Any) -> Any:
    """The class with these bases, made once: the first `body` counts.

    It shows the name and module of `like`.
    """
    found = _made.get(bases)
    if found is None:
        shown = {"__module__": like.__module__, "__doc__": like.__doc__, **body}
        found = _made[bases] = type(like.__name__, bases, shown)
    return found


def view_of(client: Any, mixin: type, state: Any) -> Any:
    """An object of the client's class with the methods of `mixin`, which shares its attributes.

    `state` is its ``_mulligan``, which the client does not get.
    """
    cls = type(client)
    view = object.__new__(runtime_class(mixin, cls, like=cls, __slots__=("_mulligan",)))
    view.__dict__ = client.__dict__
    view._mulligan = state
    return view


def guarded_view(client: Any, mixin: type, sender: Sender) -> Any:
    """A view of `client` that sends by `sender`; of the original where it is a view already.

    It keeps the original: SDKs close theirs when it is collected.
    """
    known = getattr(client, "_mulligan", None)
    if known is not None:
        if known[0].guard is sender.guard and known[0].keys == sender.keys:
            return client
        client = known[1]
    return view_of(client, mixin, (sender, client))

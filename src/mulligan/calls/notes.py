"""Attaches the story of a call to the caller's exception, as an attribute and as a note.

The exception itself is never replaced. If it cannot be annotated, it is raised as it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .context import endings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.story import Story

__all__ = (
    "annotate",
    "attach",
    "binds",
    "caused",
    "ended_inside",
    "is_letter_written",
    "mark_letter_written",
    "remark",
    "stands_alone",
    "story",
)

_ATTRIBUTE = "__mulligan__"
_WRITTEN = "__mulligan_letter__"  # the number of the ending that a letter was written about
_PREFIX = "mulligan: "

# Deeper than any chain that a program builds on purpose.
_DEEPEST = 100

# Where exceptions of HTTP clients and SDKs keep what they are about.
_MESSAGES = ("response", "request", "_request")
_CARRIERS = frozenset((_ATTRIBUTE, *_MESSAGES))

# Endings that an outer guard may see otherwise: it may understand the error, or wait longer.
_OPEN = ("unknown", "parked", "horizon")


class _Pinned:
    """A story with the number of the ending it belongs to.

    Pickled as a plain dictionary: an exception that carries one must still arrive where Mulligan
    is not installed. The number means something in this process only and stays at home.
    """

    __slots__ = ("number", "story")

    def __init__(self, story: Story, number: float = float("inf")) -> None:
        self.story, self.number = story, number

    def __reduce__(self) -> tuple[type, tuple[dict[str, object]]]:
        from dataclasses import asdict

        return dict, (asdict(self.story),)


# For exceptions that take no attribute: by identity, with a weak reference that proves that the
# identity is still theirs.
_aside: dict[int, tuple[object, _Pinned]] = {}


def annotate(error: BaseException, story: Story, *, note: bool) -> None:
    """Hang `story` on `error`, with one line for its traceback."""
    endings.count += 1
    _pin(error, _Pinned(story, endings.count))
    if note:
        remark(error, story.note)


def attach(message: Any, story: Story | None) -> None:
    """Hang `story` on a request or response: exceptions that carry it then tell the story.

    None takes away the story of an earlier call with the same object.
    """
    with suppress(Exception):  # a class that takes no attribute carries no story
        if story is not None:
            setattr(message, _ATTRIBUTE, _Pinned(story, endings.count))
        elif _ATTRIBUTE in vars(message):
            delattr(message, _ATTRIBUTE)


def remark(error: BaseException, note: str) -> None:
    """Put our one note on `error`, in place of an earlier one."""
    try:
        notes = getattr(error, "__notes__", None)
        if isinstance(notes, list):
            notes[:] = [each for each in notes if not str(each).startswith(_PREFIX)]
        error.add_note(note)
    except Exception:  # noqa: BLE001, S110 -- a note that cannot be added is not worth an error
        pass


def caused(second: BaseException, error: BaseException) -> None:
    """Let `second`, raised by a fallback, say that `error` came before it; its own cause stands."""
    if second is not error and second.__cause__ is None and not second.__suppress_context__:
        second.__cause__ = error


def _pin(error: BaseException, pinned: _Pinned) -> None:
    try:
        BaseException.__setattr__(error, _ATTRIBUTE, pinned)
    except Exception:  # noqa: BLE001 -- an exception class of the caller's, with a will of its own
        _keep_aside(error, pinned)
    if isinstance(error, BaseExceptionGroup):
        # `except*` takes groups apart, and what is left is a new group.
        for member in error.exceptions:
            _pin(member, pinned)


def _keep_aside(error: BaseException, pinned: _Pinned) -> None:
    import weakref

    key = id(error)
    try:
        reference = weakref.ref(error, lambda _: _aside.pop(key, None))
    except TypeError:
        return  # neither attribute nor weak reference: this one carries no story
    _aside[key] = (reference, pinned)


def _pinned(error: BaseException) -> _Pinned | None:
    try:
        own = BaseException.__getattribute__(error, "__dict__")
        found = own.get(_ATTRIBUTE)
        for name in _MESSAGES if found is None else ():
            if own.get(name) is not None and found is None:
                found = vars(own[name]).get(_ATTRIBUTE)
    except Exception:  # noqa: BLE001 -- see annotate
        found = None
    if found is None and _aside:
        entry = _aside.get(id(error))
        if entry is not None and entry[0]() is error:  # type: ignore[operator]
            found = entry[1]
    return _unpickled(found) if isinstance(found, dict) else found


def _unpickled(fields: dict[str, Any]) -> _Pinned | None:
    from ..core.story import Story, Try

    try:
        return _Pinned(Story(**{**fields, "tries": tuple(Try(**each) for each in fields["tries"])}))
    except (KeyError, TypeError):
        return None  # from another version: better no story than a wrong one


def story(error: BaseException) -> Story | None:
    """What Mulligan did about `error` before it let it pass; None if it never saw it.

    Looks along `__cause__` and `__context__`, and at the request and response of each, so that the
    exception which an SDK or a framework makes of the original tells its story, too.
    """
    for each in _chain(error):
        pinned = _pinned(each)
        if pinned is not None:
            return pinned.story
    return None


def is_letter_written(error: BaseException, since: int) -> bool:
    """Whether a letter about `error`, or about anything behind it, was written after `since`.

    That is `endings.count` before the attempt: an error that is raised again, or while an older one
    is handled, brings the letters of other calls along.
    """
    for each in _chain(error):
        try:
            if BaseException.__getattribute__(each, "__dict__").get(_WRITTEN, 0) > since:
                return True
        except Exception:  # noqa: BLE001, S112 -- see annotate
            continue
    return False


def mark_letter_written(error: BaseException) -> None:
    """Mark `error` as written down: a guard further out must not write the same call again."""
    # An exception class with a will of its own may refuse; then an outer guard tells it again.
    with suppress(Exception):
        BaseException.__setattr__(error, _WRITTEN, endings.count)


def ended_inside(error: BaseException, mark: int) -> Story | None:
    """The story of a call made inside the failed attempt, if `error` ended one.

    `mark` is `endings.count` before the attempt; older stories belong to other calls.
    """
    for each in _chain(error):
        pinned = _pinned(each)
        if pinned is not None and pinned.number > mark:
            return pinned.story
    return None


def binds(story: Story) -> bool:
    """Whether the ending of a guard inside is final for the guards around it."""
    return story.ending not in _OPEN


def stands_alone(error: BaseException) -> bool:
    """Whether neither the error itself nor anything behind it can carry a story.

    Then, if no call has ended since the attempt began, no guard inside of it has either: the common
    case, and quicker to see than by `ended_inside`.
    """
    try:
        return not (_CARRIERS & error.__dict__.keys() or error.__cause__ is not None or _aside)
    except Exception:  # noqa: BLE001 -- see _chain
        return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error`, what it was raised from or while handling, and members of groups, each once.

    A wrapper that forgot its ``from`` is still a wrapper: an inner guard's ending is found along
    `__context__`, too, or three layers of five attempts would make 125 calls.
    """
    seen: set[int] = set()
    waiting = [error]
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        try:
            waiting.extend(_behind(each))
        except Exception:  # noqa: BLE001, S112 -- a property of a stranger's; there is no way on
            continue


def _behind(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        yield from reversed(error.exceptions)
    if error.__cause__ is not None:
        yield error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__:
        yield error.__context__

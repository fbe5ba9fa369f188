"""Context variables of a call: the task, the attempt and the world (clock, dice, store) around it.

Loaded with the first decorated function, so it stays tiny: no dataclass, no enum, no logging.
All of it is context-local; asyncio and trio children and `to_thread` inherit it.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token
    from typing import Any

    from ..core.failure import Failure
    from .budget import Task
    from .clock import World
    from .session import Session

__all__ = (
    "Context",
    "ambient_context",
    "ambient_task",
    "ambient_world",
    "current",
    "endings",
    "key_around",
    "restore",
    "surroundings",
)

ambient_task: ContextVar[Task | None] = ContextVar("mulligan.task", default=None)
ambient_world: ContextVar[World | None] = ContextVar("mulligan.world", default=None)


class Context:
    """The attempt that is being made (R-A4).

    Attributes:
        attempt: Which attempt this is, from 1.
        failures: What the earlier attempts failed with, in order.
        key: The idempotency key of the operation that this attempt belongs to, or empty: what to
            send as ``Idempotency-Key``. The same on every attempt (R-I4).
        metadata: What the guard and the task were given to carry along.
        name: The function being called.
        target: The dependency, or empty.
    """

    __slots__ = (
        *("_first", "_request_id"),
        *("attempt", "failures", "key", "metadata", "name", "target"),
    )

    def __init__(  # noqa: PLR0917 -- keywords cost on every attempt; internal
        self,
        name: str,
        target: str,
        metadata: Mapping[str, object],
        attempt: int = 1,
        failures: tuple[Failure, ...] = (),
        first: Context | None = None,
    ) -> None:
        self.name, self.target, self.metadata = name, target, metadata
        self.attempt, self.failures, self._first = attempt, failures, first
        self._request_id = ""
        self.key = key_around()

    @property
    def first(self) -> Context:
        """The context of this call that was asked for first: it owns the request id."""
        return self._first or self

    @property
    def request_id(self) -> str:
        """The same for every attempt of this call, and different from every other call's."""
        # Drawn when first asked for, by whichever attempt: most calls never need one.
        if self._first is not None:
            return self._first.request_id
        if not self._request_id:
            self._request_id = os.urandom(8).hex()
        return self._request_id

    def __repr__(self) -> str:
        return f"Context({self.name!r}, attempt={self.attempt}, request_id={self.request_id!r})"


# A session stands for the context of its attempt until `current()` is called: few functions do.
ambient_context: ContextVar[Context | Session | None] = ContextVar("mulligan.context", default=None)


def key_around() -> str:
    """The key of the operation around us, or empty.

    A guard inside an operation repeats a part of it, hence under the same key.
    """
    around = ambient_context.get()
    return "" if around is None else around.key


def restore(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Give `variable` its old value back.

    A generator that was begun in one context may be ended in another, as yield dependencies of
    web frameworks are. There is nothing to restore there, and an error on its way must not be
    replaced by one about it.
    """
    try:  # noqa: SIM105 -- contextlib is not loaded for this
        variable.reset(token)
    except ValueError:
        pass


def current() -> Context | None:
    """The attempt that is being made, or None.

    Known in every attempt after the first, inside `task()`, under a key, and with
    ``context=True``: a first attempt outside of these is not worth the time it takes to say so.
    """
    found = ambient_context.get()
    return found if found is None or isinstance(found, Context) else found.context()


class _Endings:
    """How many calls have ended without success so far, in this process.

    A guard remembers the count before an attempt. A story found on an exception was written
    during that attempt only if its number is higher: an exception object that is raised again
    later, in another call, carries an old story that must not be believed.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


endings = _Endings()


class _Surroundings:
    """Whether any context of this process has ever had a world or a task of its own.

    Until then no call has to look for one. It is never unset: children inherit the context of
    their parent, and may outlive the parent's task.
    """

    __slots__ = ("exist",)

    def __init__(self) -> None:
        self.exist = False


surroundings = _Surroundings()

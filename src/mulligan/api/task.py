"""Tasks: one retry budget and one deadline for all guarded calls inside a block."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..calls.budget import Task
from ..calls.clock import world
from ..calls.context import ambient_task, restore, surroundings
from ..core.duration import Duration, seconds
from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Token
    from types import TracebackType

__all__ = ("task",)


class task:  # noqa: N801 -- used as a statement: with mulligan.task(budget=30): …
    """Every guard inside shares this budget and this deadline.

    Use it with ``with`` or ``async with``. asyncio and trio children and ``to_thread`` inherit it;
    nested tasks take the smaller of what is left.

    Args:
        budget: Time for waits and for attempts after the first, summed over all calls inside.
        deadline: Time from now to the end. No wait passes it, no attempt starts after it, and a
            running coroutine is cut at it.
        metadata: What ``current().metadata`` carries inside.

    Raises:
        SettingError: An invalid budget or deadline.
    """

    __slots__ = ("_budget", "_deadline", "_metadata", "_token")

    def __init__(
        self,
        *,
        budget: Duration | None = None,
        deadline: Duration | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        self._budget = inf if budget is None else seconds(budget, name="budget")
        self._deadline = inf if deadline is None else seconds(deadline, name="deadline")
        self._metadata = metadata or {}
        self._token: Token[Task | None] | None = None

    def __enter__(self) -> Task:
        if self._token is not None:
            raise SettingError("a task is entered once; write another mulligan.task(…)")
        inner = Task(
            world().clock,
            budget=self._budget,
            deadline=self._deadline,
            metadata=self._metadata,
            parent=ambient_task.get(),
        )
        self._token, surroundings.exist = ambient_task.set(inner), True
        return inner

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._token is not None  # noqa: S101 -- entered before it is left
        restore(ambient_task, self._token)

    async def __aenter__(self) -> Task:
        return self.__enter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exc_type, error, traceback)

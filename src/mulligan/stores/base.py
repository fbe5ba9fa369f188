"""Base class of states by key: what is done to one key, by what is done to several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.moment import Moment
    from .state_machine import Key, Machine, Operation

__all__ = ("StatesByKey",)

S = TypeVar("S")
R = TypeVar("R")


class StatesByKey:
    """States that a subclass reads and changes several at a time."""

    if TYPE_CHECKING:

        def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]: ...

        def peek_all(
            self, wanted: Sequence[tuple[Key, Machine[Any]]]
        ) -> tuple[list[Any], Moment]: ...

    def transact(self, key: Key, operation: Operation[S, R]) -> R:
        result: R = self.transact_all(((key, operation),))[0]
        return result

    def peek(self, key: Key, machine: Machine[S]) -> tuple[S, Moment]:
        (state,), moment = self.peek_all(((key, machine),))
        return state, moment

    async def atransact(self, key: Key, operation: Operation[S, R]) -> R:
        """As `transact`, in a thread.

        If the waiting task is cancelled, it still runs to its end: operations carry ids, so a
        caller can ask for a lost answer again.
        """
        from ..threads import in_thread  # loads logging, which plain calls do without

        return await in_thread(self.transact, key, operation, is_awaited=False)

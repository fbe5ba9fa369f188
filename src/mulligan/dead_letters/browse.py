"""Public API of dead letters: list, replay and purge them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..core.duration import Duration, seconds
from ..errors import SettingError
from .replay import astray, hindrance, replay
from .writer import letters_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.dead_letter import Mark, Record, State
    from ..core.ports import Store

__all__ = ("DeadLetters",)


class DeadLetters:
    """Calls that ran out of attempts, time or budget, as guards with `dead_letters` wrote them.

    Args:
        store: A store or its address. Default: ``MULLIGAN_STORE``, else a file of this user's,
            where guards write that were not told otherwise.
    """

    def __init__(self, store: Store | str | None = None) -> None:
        self._letters = letters_at(store)

    @property
    def url(self) -> str:
        """The store, without its password."""
        return self._letters.store.url

    def all(
        self,
        *,
        target: str | None = None,
        function: str | None = None,
        states: Iterable[State] = (),
        older: Duration | None = None,
        newer: Duration | None = None,
        now: float | None = None,
    ) -> tuple[Record, ...]:
        """The letters, oldest first.

        Args:
            target: Only those of this dependency.
            function: Only those of this function: what it is replayable as, or where it is
                defined, ``shop.hooks.deliver``, or the end of that.
            states: Only those in one of these states.
            older: Only those that were written longer ago than this.
            newer: Only those that were written no longer ago than this.
            now: The time to count back from, in epoch seconds.

        Raises:
            StoreDown: The store cannot be read.
        """
        found = self._letters.all()
        clock = time.time() if now is None else now
        chosen, before, after = set(states), float("inf"), float("-inf")
        if older is not None:
            before = clock - seconds(older, name="older")
        if newer is not None:
            after = clock - seconds(newer, name="newer")
        return tuple(
            record
            for record in found
            if target in (None, record.letter.target)
            and (function is None or _is_of(record, function))
            and (not chosen or record.state in chosen)
            and after <= record.letter.at < before
        )

    def spooled(self) -> tuple[Record, ...]:
        """Letters in spool files of this machine, because the store could not be written."""
        return self._letters.spooled()

    def get(self, id: str) -> Record:  # noqa: A002 -- what it is called everywhere
        """The letter whose id begins like this.

        Raises:
            SettingError: There is none, or more than one.
        """
        exact = self._letters.get(id)
        if exact is not None:
            return exact
        found = [record for record in self._letters.all() if record.letter.id.startswith(id)]
        if len(found) != 1 or not id:
            many = f"{len(found)} letters begin with {id!r}; give more characters"
            raise SettingError(many if found else f"no dead letter {id!r} in {self.url}")
        return found[0]

    def hindrance(self, record: Record) -> str:
        """Why this process cannot replay a letter; empty if it can. Calls nothing."""
        if record.state == "replayed":
            return "it has been replayed"
        return astray(self._letters, record) or hindrance(record.letter)

    def replay(self, record: Record) -> Mark | None:
        """Repeat the call, and mark the letter with its result.

        The function must be known here: import the module that has it. What it raises is marked,
        and not raised.

        Returns:
            The mark; None if another replay is running.

        Raises:
            StoreError: The letter could not be claimed: nothing was called.
        """
        return replay(self._letters, record.letter)

    def purge(self, record: Record) -> None:
        """Delete a letter with its marks."""
        self._letters.forget(record.letter)


def _is_of(record: Record, function: str) -> bool:
    letter = record.letter
    return function in (letter.name, letter.function) or letter.function.endswith(f".{function}")

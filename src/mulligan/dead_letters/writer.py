"""Writes a dead letter for a call that ran out of attempts, time or budget.

Everything in a letter passes the masker. An argument that the masker would change is not stored at
all, since a changed argument must never be sent again.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..calls.callables import name_of
from ..calls.context import ambient_world
from ..calls.notes import is_letter_written, mark_letter_written
from ..core.dead_letter import Letter
from ..core.redaction import mask, presentable
from ..errors import MulliganError, SettingError
from ..shared.target import STORE, store_for
from .replayable import fit, replayable_of
from .spool import LetterSpool
from .storage import Letters, new_id, put_aside

if TYPE_CHECKING:
    from ..core.dead_letter import ExhaustedCall, UnderKey
    from ..core.ports import Store
    from ..errors import StoreError

__all__ = ("GuardLetterWriter", "letters_at", "replaying")

# A replay could not know that the operation has succeeded meanwhile.
_APART = "its key is kept in another store than the letter; give both one store"

# Set while a letter is replayed: another failure adds a mark to that letter, not a new letter.
replaying: ContextVar[bool] = ContextVar("mulligan.replaying", default=False)


class GuardLetterWriter:
    """Writes letters for one guard.

    Args:
        where: A store, or its address; None for the guard's own.
        store: The guard's option.
        otherwise: What its policy says about the store.

    Raises:
        SettingError: It is neither.
    """

    def __init__(
        self, where: Store | str | None, store: Store | str | None, otherwise: str = ""
    ) -> None:
        if where is not None:
            if not isinstance(where, str) and not hasattr(where, "journal"):
                raise SettingError(
                    f"dead_letters needs True, a store or its address such as sqlite:PATH; "
                    f"got {where!r}"
                )
            store_for(where)  # an invalid address is refused where it is written
        self._where, self._store, self._otherwise = where, store, otherwise

    def write(self, lost: ExhaustedCall) -> StoreError | None:
        """Write a letter about a call, unless a guard inside has.

        Returns:
            Why it is not in the store, if it is not.
        """
        found = self._found(lost)
        if found is None:
            return None
        letters, letter = found
        return letters.write(letter)

    async def awrite(self, lost: ExhaustedCall) -> StoreError | None:
        """Like `write`, without holding up the loop."""
        found = self._found(lost)
        if found is None:
            return None
        letters, letter = found
        return await letters.awrite(letter)

    def _found(self, lost: ExhaustedCall) -> tuple[Letters, Letter] | None:
        """The letter about a call, with where it goes; None if there is nothing left to write."""
        if replaying.get() or is_letter_written(lost.error, lost.since):
            return None
        letter = letter_of(lost)
        mark_letter_written(lost.error)
        try:
            letters = self._letters()
            if lost.under is not None and letters.store is not store_for(
                self._store, self._otherwise
            ):
                letter = replace(letter, arguments=None, unfit=_APART)
        except MulliganError as trouble:  # an invalid address in the environment
            put_aside(letter, trouble, LetterSpool())
            return None
        return letters, letter

    def _letters(self) -> Letters:
        if self._where is None:
            return letters_at(self._store, self._otherwise)
        return Letters(store_for(self._where))


def letters_at(store: Store | str | None, otherwise: str = "") -> Letters:
    """The letters of `store`, ``MULLIGAN_STORE``, or a file of this user's.

    Not of this process's memory, unless asked for: what is written there is lost with the
    process, and cannot be read from outside.
    """
    import os

    world = ambient_world.get()
    is_said = store is not None or otherwise or os.environ.get(STORE)
    if not is_said and (world is None or world.store is None):
        from ..stores.home import home

        store = f"sqlite:{home() / 'mulligan.db'}"
    return Letters(store_for(store, otherwise))


def letter_of(lost: ExhaustedCall) -> Letter:
    """The letter about a call."""
    made = replayable_of(lost.function)
    arguments: dict[str, Any] | None = None
    unfit = "its function is not replayable"
    if made is not None:
        arguments, unfit = fit(made, lost.function, lost.args, lost.kwargs)
    under = lost.under
    if under is not None and _is_secret(under):
        under, arguments = None, None
        unfit = "its key looks like a secret, and was not stored"
    story, failure = lost.story, lost.failure
    return Letter(
        id=new_id(),
        at=lost.at,
        target=presentable(story.target, 200),
        function=presentable(_place(lost.function), 200),
        name="" if made is None else made.name,
        arguments=arguments,
        secrets=() if made is None else made.secrets,
        unfit=unfit,
        effects=lost.effects,
        loop=lost.loop,
        under=under,
        ending=story.ending,
        because=presentable(story.because),
        attempts=story.attempts,
        kind=str(failure.kind),
        status=failure.status,
        message=presentable(failure.message),
        retry_at=story.retry_at,
    )


def _is_secret(under: UnderKey) -> bool:
    return mask(under.key) != under.key


def _place(function: Any) -> str:
    home = getattr(function, "__module__", "") or ""
    return f"{home}.{getattr(function, '__qualname__', name_of(function))}".lstrip(".")

"""Blocks that are retried: ``for attempt in attempts(): with attempt: …``.

    for attempt in mulligan.attempts(effects="read"):
        with attempt:
            …

The loop ends when a block has succeeded; an error that ends the call leaves the block as itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ..calls.loop import Raised, Sleep, Steps, admission
from ..calls.session import Session
from ..calls.settings import NO_FALLBACK
from ..calls.streams import HandOver, astream, stream
from ..core.decisions import GiveUp, Park, RetryAfter, Verify
from ..core.redaction import presentable
from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import TracebackType

    from .engine import Engine

__all__ = ("Attempt", "Attempts")


class Attempt:
    """One attempt: a context manager for one block.

    Attributes:
        number: Which attempt this is, from 1.
    """

    __slots__ = ("_session", "delay", "last_error", "number", "was_entered")

    def __init__(self, session: Session) -> None:
        self._session = session
        self.number = session.call.attempt + 1
        self.delay: float | None = None  # seconds to wait before the next one, if there is one
        self.last_error: Exception | None = None  # to be raised by the loop, after a wait
        self.was_entered = False

    def __enter__(self) -> Self:
        if self.was_entered:
            raise SettingError("an attempt is entered once; take the next one from the loop")
        self.was_entered = True
        self._session.begin()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        session = self._session
        if error is None:
            session.succeeded()
            return False
        if not isinstance(error, Exception):
            session.cancelled()
            return False
        match session.failed(error):
            case RetryAfter(delay=delay):
                self.delay = delay
                return True
            case Park() | GiveUp() as decision:
                session.end(error, decision)
                if session.pause:
                    return self._breathe(error)
            case Verify() as doubt:
                # verify= takes a call's arguments, and a block has none: attempts() refuses it.
                raise AssertionError(doubt)
        return False

    def _breathe(self, error: Exception) -> bool:
        """Wait before an end that a loop around the block would repeat at once.

        A with statement cannot await: there the loop does it, and raises the error.
        """
        if self._session.is_async:
            self.last_error = error
            return True
        self._session.clock.sleep(self._session.pause)
        return False


class Attempts:
    """The attempts of one block, for ``for`` and for ``async for``."""

    __slots__ = ("_engine", "_name")

    def __init__(self, engine: Engine, name: str) -> None:
        settings = engine.settings
        for option, value in (
            ("judge", settings.judge),
            ("observe", settings.observe),
            ("estimate", settings.estimate),
            ("spent", settings.spent),
            ("verify", settings.verify),
            ("fallback", None if settings.fallback is NO_FALLBACK else settings),
            ("dead_letters", settings.letters),
            ("timeout", settings.timeouts and settings.timeouts.total),
        ):
            if value is not None:
                raise SettingError(
                    f"attempts() takes no {option}: a block has no answer, no arguments, and "
                    f"cannot be cut; make it a function and write @mulligan.retry"
                )
        self._engine, self._name = engine, presentable(name, 100)

    def __iter__(self) -> Iterator[Attempt]:
        session = Session(self._engine.settings, self._name)
        return stream(session, _blocks(session))

    def __aiter__(self) -> AsyncIterator[Attempt]:
        session = Session(self._engine.settings, self._name)
        return astream(session, _blocks(session))


def _blocks(session: Session) -> Steps:
    """Hand over one attempt after another, until a block has succeeded or the call has ended."""
    try:
        while True:
            ended = (yield from admission(session, (), {})) if session.is_bounded else None
            if ended is not None:
                session.end(*ended)
                return Raised(ended.error)
            attempt = Attempt(session)
            yield HandOver(attempt)
            if not attempt.was_entered:
                return Raised(SettingError("the loop needs `with attempt:` around what it tries"))
            if attempt.last_error is not None:
                yield Sleep(session.pause)
                error, attempt.last_error = attempt.last_error, None
                return Raised(error)
            if attempt.delay is None:
                return None
            yield Sleep(attempt.delay)
    except BaseException:
        session.cancelled()  # gives back what an attempt was admitted with that was never made
        raise

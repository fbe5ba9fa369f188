"""The drivers for what is done once: claim, call, keep.

The claim stands around all attempts of a call, so the key is written down before anything is sent
(E-F1) and is the same for every attempt. Whoever comes second waits for the first one's result.

    take ──Mine──▶ call ──answer──▶ finish ──▶ answer
      │              └──error────▶ drop ────▶ error        a failure is never kept (E-F6)
      ├──Done──▶ the answer that was kept
      └──Busy──▶ wait, take again; in the end KeyBusy

The two twins below differ in how they wait, and in nothing else.
"""

from __future__ import annotations

from types import CoroutineType
from typing import TYPE_CHECKING, Any

from ..core.claims import Busy, Done
from ..core.events import Held, StoreLost
from ..core.failure import Kind, Reach
from ..errors import KeyBusy, StoreDown, StoreError
from . import aio, sync
from .announce import announce
from .bells import AsyncBell, Bell, listening
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ..core.admission import Hold
    from ..core.claims import Mine
    from .holding import Holding
    from .settings import Settings

__all__ = ("KeyedSession", "arun", "run")

# How soon a waiter looks at the store again; a holder in this process rings.
_FIRST_LOOK, _SLOWER, _LAST_LOOK = 0.01, 1.5, 0.5


class KeyedSession(Session):
    """One call under a key.

    Args:
        settings: The guard's.
        name: The function, for people.
        holding: The key.
    """

    is_done = False  # whether the function itself succeeded; a fallback is no success
    _answer: Any = None  # what it returned
    _refusal: KeyBusy | None = None
    _look = _FIRST_LOOK
    _gives_up_at: float | None = None

    def __init__(self, settings: Settings, name: str, holding: Holding) -> None:
        super().__init__(settings, name)
        self.holding, self.key = holding, holding.terms.key
        if settings.letters is not None:
            self.under = holding.terms.under()

    def busy(self, answer: Busy) -> float | None:
        """Somebody else has the key: seconds until we look again, or None if we cannot wait."""
        call, now, because = self.call, self.clock.now(), f"{self.holding.label!r} is being done"
        if self._gives_up_at is None:
            self._gives_up_at = min(now + self.settings.policy.in_place, call.deadline_at)
            if self.settings.listeners:
                delay = min(answer.retry_in, self._gives_up_at - now)
                announce(self, Held, attempt=1, delay=max(delay, 0.0), because=because)
        left = self._gives_up_at - now
        if left <= 0:
            self._refusal = KeyBusy(self._who(), answer.retry_in, f"{because} by another caller")
            self.is_bounded = True  # so that `ask` is called, and says so
            return None
        look, self._look = self._look, min(self._look * _SLOWER, _LAST_LOOK)
        return min(look * (0.5 + self.dice.roll()), left)

    @property
    def is_in_doubt(self) -> bool:
        """Whether an attempt that failed or never ended may have been applied.

        An error that nobody understands is most often the program's own, about these arguments:
        it must be possible to correct them.
        """
        tries, attempt = self.call.tries, self.call.attempt
        return len(tries) < attempt or any(
            failure.reach is Reach.MAYBE_APPLIED and failure.kind is not Kind.UNKNOWN
            for failure, _, _ in tries
        )

    def ask(self) -> Hold | None:
        if self._refusal is not None:
            raise self._refusal
        return super().ask()

    def returned(self, answer: Any) -> None:
        self.is_done, self._answer = True, answer

    def settle(self) -> None:
        """Have what the function returned recorded, though its caller will not hear of it.

        A caller may be cancelled while others are told of the success. The effect has happened:
        a key that was given back then would let it happen again.
        """
        holding = self.holding
        holding.settle(holding.finish(holding.written(self._answer)[0]))


def _overtaken(session: KeyedSession) -> None:
    """Say that a result is discarded: the one thing here that nobody else would notice."""
    import logging

    logging.getLogger("mulligan").warning(
        "%s was overtaken by another caller of operation %r: its result is discarded for theirs",
        session.call.name,
        session.holding.label,
    )


def _unrecorded(session: KeyedSession, error: Exception) -> None:
    """Say that only this process knows what was done."""
    import logging

    trouble = error
    if not isinstance(trouble, StoreError):  # one that is being closed raises anything
        trouble = StoreDown("the store", f"no answer ({type(error).__name__})")
    if session.settings.listeners:
        label = session.holding.label
        because = f"{label!r} was done, which could not be recorded yet ({trouble.because})"
        announce(session, StoreLost, url=trouble.url, because=because)

    logging.getLogger("mulligan").warning(
        "%s was done as operation %r, which could not be recorded yet (%s)",
        session.call.name,
        session.holding.label,
        trouble,
    )


def run(
    session: KeyedSession,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `function` under its key, or hand out what came of it before."""
    holding = session.holding
    found = _claim(session)
    if isinstance(found, Done):
        return holding.replayed(found)
    try:
        answer = sync.run(session, function, args, kwargs)
    except BaseException:
        if session.is_done:
            session.settle()
        else:
            _drop(session)
        raise
    if answer.__class__ is CoroutineType and not session.is_done:
        return _driven(session, answer)
    if not session.is_done:
        _drop(session)
        return answer
    return _keep(session, answer)


def _claim(session: KeyedSession) -> Mine | Busy | Done:
    """Take the key, waiting for whoever has it; Busy if we waited for nothing."""
    holding, terms = session.holding, session.holding.terms
    bell = Bell()
    with listening(terms.place, bell):
        while True:
            known = holding.known()
            if known is not None:
                return known
            try:
                found = holding.taken(terms.keys.transact(terms.place, holding.take()))
            except StoreError:
                holding.leave()
                raise
            delay = session.busy(found) if isinstance(found, Busy) else None
            if delay is None:
                return found
            bell.wait(session.clock, delay)


def _keep(session: KeyedSession, answer: Any) -> Any:
    """Record `answer` and hand it out; or what was recorded meanwhile."""
    holding, terms = session.holding, session.holding.terms
    text, trouble = holding.written(answer)
    while True:
        finish = holding.finish(text)
        try:
            landed = terms.keys.transact(terms.place, finish)
        except Exception as down:  # noqa: BLE001 -- it is done: nothing takes the answer's place
            holding.settle(finish)
            _unrecorded(session, down)
            break
        except BaseException:
            holding.settle(finish)
            raise
        if landed:
            break
        _overtaken(session)
        try:
            found = _claim(session)
        except StoreError as down:
            _unrecorded(session, down)
            break
        if isinstance(found, Done):
            return holding.replayed(found)
        if isinstance(found, Busy):
            raise holding.overtaken(answer)
    holding.end()
    if trouble is not None:
        raise trouble
    return answer


def _drop(session: KeyedSession) -> None:
    holding, terms = session.holding, session.holding.terms
    if not holding.is_held:
        return
    try:
        terms.keys.transact(terms.place, holding.drop(in_doubt=session.is_in_doubt))
    except Exception:  # noqa: BLE001, S110 -- the caller's own error is on its way
        pass  # the lease ends by itself
    finally:
        holding.end()


async def arun(
    session: KeyedSession,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call and await `function` under its key, or hand out what came of it before."""
    holding = session.holding
    found = await _aclaim(session)
    if isinstance(found, Done):
        return holding.replayed(found)
    return await _driven(session, aio.run(session, function, args, kwargs))


async def _driven(session: KeyedSession, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`, which runs under the key that `session` has taken."""
    holding = session.holding
    try:
        answer = await work
    except BaseException as error:
        if session.is_done:
            session.settle()
        elif isinstance(error, Exception):
            await _adrop(session)
        else:
            holding.leave()
        raise
    if not session.is_done:
        await _adrop(session)
        return answer
    return await _akeep(session, answer)


async def _aclaim(session: KeyedSession) -> Mine | Busy | Done:
    """Take the key, waiting for whoever has it; Busy if we waited for nothing."""
    holding, terms = session.holding, session.holding.terms
    bell = AsyncBell()
    with listening(terms.place, bell):
        while True:
            known = holding.known()
            if known is not None:
                return known
            try:
                found = holding.taken(await terms.keys.atransact(terms.place, holding.take()))
            except StoreError:
                holding.leave()
                raise
            except Exception:
                raise
            except BaseException:
                holding.leave()
                raise
            delay = session.busy(found) if isinstance(found, Busy) else None
            if delay is None:
                return found
            await bell.wait(session.clock, delay)


async def _akeep(session: KeyedSession, answer: Any) -> Any:
    """Record `answer` and hand it out; or what was recorded meanwhile."""
    holding, terms = session.holding, session.holding.terms
    text, trouble = holding.written(answer)
    while True:
        finish = holding.finish(text)
        try:
            landed = await terms.keys.atransact(terms.place, finish)
        except Exception as down:  # noqa: BLE001 -- it is done: nothing takes the answer's place
            holding.settle(finish)
            _unrecorded(session, down)
            break
        except BaseException:
            holding.settle(finish)
            raise
        if landed:
            break
        _overtaken(session)
        try:
            found = await _aclaim(session)
        except StoreError as down:
            _unrecorded(session, down)
            break
        if isinstance(found, Done):
            return holding.replayed(found)
        if isinstance(found, Busy):
            raise holding.overtaken(answer)
    holding.end()
    if trouble is not None:
        raise trouble
    return answer


async def _adrop(session: KeyedSession) -> None:
    holding, terms = session.holding, session.holding.terms
    if not holding.is_held:
        return
    try:
        drop = holding.drop(in_doubt=session.is_in_doubt)
        await terms.keys.atransact(terms.place, drop)
    except Exception:  # noqa: BLE001, S110 -- the caller's own error is on its way
        pass  # the lease ends by itself
    except BaseException:
        holding.leave()
        raise
    finally:
        holding.end()

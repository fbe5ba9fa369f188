"""Runs a function once under a key: claim, call, store the result.

The claim stands around all attempts of a call, so the key is written down before anything is sent
(E-F1) and is the same for every attempt. A second caller waits for the result of the first.

    take ──Mine──▶ call ──answer──▶ finish ──▶ answer
      │              └──error────▶ drop ────▶ error        a failure is never kept (E-F6)
      ├──Done──▶ the answer that was kept
      └──Busy──▶ wait, take again; in the end KeyBusy

The loop is run by `calls.loop`, plain or awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..calls.clock import REAL
from ..calls.emit import announce
from ..calls.loop import ToBeAwaited, attempts
from ..calls.session import Session
from ..calls.wakeups import TaskWakeup, ThreadWakeup
from ..core.failure import Kind, Reach
from ..errors import KeyBusy, StoreDown, StoreError
from .claims import Busy, Done
from .wakeups import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..calls.loop import Steps
    from ..calls.settings import CallSettings
    from .claims import Mine
    from .holder import KeyHold

__all__ = ("KeyedSession", "keyed")

# How soon a waiter looks at the store again; a holder in this process wakes it. A lease expires
# only while waiters look (`once.claims`), so they look several times in one.
_FIRST_LOOK, _SLOWER, _LAST_LOOK, _IN_A_LEASE = 0.01, 1.5, 0.5, 12


class KeyedSession(Session):
    """One call under a key.

    Args:
        settings: The guard's.
        name: The function, for people.
        holding: The key.
    """

    _look = _FIRST_LOOK
    _gives_up_at: float | None = None

    def __init__(self, settings: CallSettings, name: str, holding: KeyHold) -> None:
        super().__init__(settings, name)
        self.holding, self.key = holding, holding.terms.key
        if settings.letters is not None:
            self.under = holding.terms.under()

    def busy(self, answer: Busy) -> float | None:
        """Another caller has the key: seconds until we look again, or None if we cannot wait."""
        call, now, because = self.call, self.clock.now(), f"{self.holding.label!r} is being done"
        if self._gives_up_at is None:
            self._gives_up_at = min(now + self.settings.policy.in_place, call.deadline_at)
            if self.settings.listeners:
                delay = min(answer.retry_in, self._gives_up_at - now)
                announce(self, "Held", attempt=1, delay=max(delay, 0.0), because=because)
        left = self._gives_up_at - now
        if left <= 0:
            self.refusal = KeyBusy(call.label, answer.retry_in, f"{because} by another caller")
            self.is_bounded = True
            return None
        slowest = min(_LAST_LOOK, self.holding.terms.lease / _IN_A_LEASE)
        look, self._look = self._look, min(self._look * _SLOWER, slowest)
        return min(look * (0.5 + self.dice.roll()), left)

    @property
    def is_in_doubt(self) -> bool:
        """Whether an attempt that failed or never ended may have been applied.

        An unknown error is most often the program's own, about these arguments:
        it must be possible to correct them.
        """
        tries, attempt = self.call.tries, self.call.attempt
        return len(tries) < attempt or any(
            failure.reach is Reach.MAYBE_APPLIED and failure.kind is not Kind.UNKNOWN
            for failure, _, _ in tries
        )

    def settle(self) -> None:
        """Have what the function returned recorded, though its caller will not hear of it.

        A caller may be cancelled while others are told of the success. The effect has happened:
        a key that was given back then would let it happen again.
        """
        holding = self.holding
        holding.settle(holding.finish(holding.written(self.answer)[0]))


def _overtaken(session: KeyedSession) -> None:
    """Log that a result is discarded: nothing else would show it."""
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
        announce(session, "StoreLost", url=trouble.url, because=because)

    logging.getLogger("mulligan").warning(
        "%s was done as operation %r, which could not be recorded yet (%s)",
        session.call.name,
        session.holding.label,
        trouble,
    )


def keyed(
    session: KeyedSession,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Steps:
    """Call `function` under its key, or hand out what came of it before."""
    found = yield from _claim(session)
    if isinstance(found, Done):
        return session.holding.replayed(found)
    return (yield from _claimed(session, attempts(session, function, args, kwargs)))


def _claimed(session: KeyedSession, steps: Steps) -> Steps:
    """What `steps` end with, under the key that `session` has taken."""
    try:
        ended = yield from steps
    except BaseException as error:
        if session.is_done:
            session.settle()
        elif session.is_async and not isinstance(error, Exception):
            session.holding.leave()  # a task that is being cancelled cannot wait for the store
        else:
            yield from _drop(session)
        raise
    if ended.__class__ is ToBeAwaited:
        return ToBeAwaited(_claimed(session, ended.steps))
    if not session.is_done:
        yield from _drop(session)
        return ended
    return (yield from _keep(session, ended))


def _claim(session: KeyedSession) -> Generator[Any, Any, Mine | Busy | Done]:
    """Take the key, waiting for its holder; Busy if that was in vain."""
    holding, terms = session.holding, session.holding.terms
    wakeup = TaskWakeup() if session.is_async else ThreadWakeup()
    with listening(terms.place, wakeup):
        while True:
            known = holding.known()
            if known is not None:
                return known
            try:
                answer = yield Transact(holding.take())
            except BaseException:
                # Interrupted, or the store's answer was lost: the key may be ours.
                holding.leave()
                raise
            found = holding.taken(answer)
            delay = session.busy(found) if isinstance(found, Busy) else None
            if delay is None:
                return found
            yield WaitForKey(wakeup, delay)


def _keep(session: KeyedSession, answer: Any) -> Steps:
    """Record `answer` and hand it out; or what was recorded meanwhile."""
    holding = session.holding
    text, trouble = holding.written(answer)
    while True:
        finish = holding.finish(text)
        try:
            landed = yield Transact(finish)
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
            found = yield from _claim(session)
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


def _drop(session: KeyedSession) -> Steps:
    """Give the key back: the call has failed."""
    holding = session.holding
    if not holding.is_held:
        return
    try:
        yield Transact(holding.drop(in_doubt=session.is_in_doubt))
    except Exception:  # noqa: BLE001, S110 -- the caller's own error is on its way
        pass  # the lease ends by itself
    except BaseException:
        holding.leave()
        raise
    finally:
        holding.end()


class Transact:
    """Have the store of the keys apply a transition to the claim of the session's key."""

    __slots__ = ("transition",)

    def __init__(self, transition: Any) -> None:
        self.transition = transition

    def plain(self, session: KeyedSession) -> Any:
        terms = session.holding.terms
        return terms.keys.transact(terms.place, self.transition)

    async def awaited(self, session: KeyedSession) -> Any:
        terms = session.holding.terms
        return await terms.keys.atransact(terms.place, self.transition)


class WaitForKey:
    """Wait until the holder of the key ends, `delay` seconds at most.

    No waiter is woken in virtual time: it passes when the caller sleeps.
    """

    __slots__ = ("delay", "wakeup")

    def __init__(self, wakeup: Any, delay: float) -> None:
        self.wakeup, self.delay = wakeup, delay

    def plain(self, session: KeyedSession) -> None:
        if session.clock is REAL.clock:
            self.wakeup.wait(self.delay)
        else:
            session.clock.sleep(self.delay)

    async def awaited(self, session: KeyedSession) -> None:
        if session.clock is REAL.clock:
            await self.wakeup.wait(self.delay)
        else:
            await session.clock.asleep(self.delay)

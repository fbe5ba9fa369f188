"""Replays dead letters, each by one replay at a time.

A letter is claimed first, and marked before the function is called: two replays at once make one
call, and a killed replay leaves a mark. A letter with an idempotency key is replayed under it, so
an operation that has succeeded meanwhile is not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import unwrap
from typing import TYPE_CHECKING, Any

from ..api.engine import Engine
from ..calls.callables import ASYNC, function_kind, name_of
from ..calls.clock import world
from ..calls.loop import arun, attempts, run
from ..calls.session import Session
from ..calls.settings import NO_FALLBACK
from ..core.dead_letter import Mark
from ..core.failure import Effects
from ..core.redaction import presentable
from ..errors import MulliganError, NotKept, StoreError
from ..once.api import keyed_of
from ..once.claims import Busy, Done
from ..once.holder import KeyHold, OnceTerms
from ..once.run import KeyedSession, keyed
from ..stores.state_machine import Key
from .replayable import known, rebuilt
from .writer import replaying

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..calls.loop import Steps
    from ..core.dead_letter import Letter, Record, State
    from ..once.claims import Mine
    from .replayable import Replayable
    from .storage import Letters

__all__ = ("astray", "hindrance", "replay")

_LEASE = 30.0
_INTERRUPTED = "it was interrupted, and may have been made"
# Seconds between tries to record that a call was made: no caller waits here.
_TRIES = (0.5, 1.0, 2.0, 4.0)
# As long as another process may still use an old list of letters.
_REMEMBERED = 30 * 86_400.0


class _Hindered(MulliganError):
    """The letter cannot be replayed, for the reason that this says."""


def hindrance(letter: Letter) -> str:
    """Why `letter` cannot be replayed by this process; empty if it can. Calls nothing."""
    made = known().get(letter.name)
    if letter.unfit:
        return letter.unfit
    if made is None:
        return (
            f"no imported function is replayable as {letter.name!r}; --app names the module with it"
        )
    if letter.secrets and made.supply is None:
        return (
            f"{letter.name!r} needs {', '.join(letter.secrets)}, which letters do not store; "
            f"give replayable({letter.name!r}, …) a function for it, supply=…"
        )
    return ""


def astray(letters: Letters, record: Record) -> str:
    """Why `record`, a spooled letter, does not belong to this store; empty if it does.

    Its key, and other replays of it, are known to the store that it was written for.
    """
    home = record.letter.home
    if not record.spooled or home in {"", letters.store.url}:
        return ""
    return f"it belongs to the store {home}; replay it with that store"


def replay(letters: Letters, letter: Letter) -> Mark | None:
    """Repeat the call of `letter`, and mark the letter with its result.

    Returns:
        The mark; None if another replay has the letter, or it is gone.

    Raises:
        StoreError: The letter could not be claimed: nothing was called.
    """
    record = letters.get(letter.id)
    away = "" if record is None else astray(letters, record)
    if away:
        return _mark("refused", away)
    holding = _holding(letters, letter)
    terms = holding.terms
    found: Mine | Busy | Done | None = holding.known()
    if found is None:
        found = holding.taken(terms.keys.transact(terms.place, holding.take()))
    if isinstance(found, Busy):
        return None
    if isinstance(found, Done):
        return _already(letters, letter)
    is_made = False
    try:
        mark = _claimed(letters, letter)
        is_made = mark is not None and mark.state == "replayed"
        if is_made:
            _finish(holding, letter)
        else:
            terms.keys.transact(terms.place, holding.drop())
        if mark is not None:
            letters.mark(letter, mark)
    except BaseException:
        if not is_made:
            with suppress(StoreError):  # the lease expires by itself
                terms.keys.transact(terms.place, holding.drop())
        elif holding.is_held:
            holding.settle(holding.finish("1"))
        raise
    finally:
        holding.end()
    return mark


def _finish(holding: KeyHold, letter: Letter) -> None:
    """Record that the call was made, so that it is not repeated.

    Raises:
        StoreError: The store is down, and another process could repeat the call.
    """
    finish, clock = holding.finish("1"), world().clock
    for delay in (*_TRIES, None):
        try:
            holding.terms.keys.transact(holding.terms.place, finish)
        except StoreError as down:
            if delay is None:
                what = f"letter {letter.id} was replayed, which could not be recorded"
                raise StoreError(down.url, f"{what} ({down.because}); purge it") from None
            clock.sleep(delay)
        else:
            return


def _holding(letters: Letters, letter: Letter) -> KeyHold:
    return KeyHold(
        OnceTerms(
            keys=letters.store.keys,
            place=Key("dead letters", f"letter/{letter.id}"),
            key=letter.id,
            fingerprint=f"letter:{letter.id}",
            lease=_LEASE,
            ttl=_REMEMBERED,
        )
    )


def _already(letters: Letters, letter: Letter) -> Mark:
    mark = Mark(state="replayed", at=time.time(), because="it had been replayed before")
    record = letters.get(letter.id)
    if record is not None and record.state != "replayed":  # killed between the two
        letters.mark(letter, mark)
    return mark


def _claimed(letters: Letters, letter: Letter) -> Mark | None:
    """The result of the letter, which is claimed now."""
    record = letters.get(letter.id)
    if record is None or record.state == "replayed":
        return None if record is None else record.marks[-1]
    if record.spooled:
        letters.collect()
    why = hindrance(letter)
    if why:
        return _mark("refused", why)
    letters.mark(letter, _mark("replaying", ""))
    token = replaying.set(True)
    try:
        because = _call(letters, letter)
    except _Hindered as hindered:
        return _mark("refused", str(hindered))
    except NotKept as done:  # the effect has happened
        return _mark("replayed", done.because)
    except Exception as error:  # noqa: BLE001 -- marked
        return _mark("failed", f"{type(error).__name__}: {error}")
    except BaseException:
        with suppress(StoreError):
            letters.mark(letter, _mark("failed", _INTERRUPTED))
        raise
    else:
        return _mark("replayed", because)
    finally:
        replaying.reset(token)


def _mark(state: State, because: str) -> Mark:
    return Mark(state=state, at=time.time(), because=presentable(because))


def _call(letters: Letters, letter: Letter) -> str:
    """Make the call; a remark on how that went."""
    made = known()[letter.name]
    secrets = _supplied(made, letter)
    # Under a key, the key's own session does what the decorators would.
    function: Callable[..., Any] = unwrap(made.function) if letter.under else made.function
    try:
        args, kwargs = rebuilt(function, letter.arguments or {}, secrets)
    except TypeError as trouble:
        raise _Hindered(f"{name_of(function)}() has changed: {trouble}") from None
    # A fallback would make a failure look like a success.
    settings = replace(_engine(made, letter).settings, fallback=NO_FALLBACK)
    is_async = function_kind(function) == ASYNC or bool(letter.loop)
    if letter.under is None:
        session = Session(settings, name_of(function))
        _run(letter.loop, session, attempts(session, function, args, kwargs), is_async=is_async)
        return ""
    settings = replace(settings, effects=Effects.KEYED)
    under = KeyedSession(settings, name_of(function), _under(letters, letter, function))
    _run(letter.loop, under, keyed(under, function, args, kwargs), is_async=is_async)
    return "" if under.is_done else "its operation has been done under its key since"


def _supplied(made: Replayable, letter: Letter) -> dict[str, Any]:
    """The arguments that letters do not store."""
    if not letter.secrets or made.supply is None:
        return {}
    who = f"supply() of {letter.name!r}"
    try:
        supplied = made.supply()
    except Exception as error:  # noqa: BLE001 -- nothing was called: the letter stays as it is
        raise _Hindered(f"{who} raised {type(error).__name__}: {error}") from None
    if not isinstance(supplied, Mapping):
        raise _Hindered(
            f"{who} needs to return the secrets by parameter; got a {type(supplied).__name__}"
        )
    missing = [name for name in letter.secrets if name not in supplied]
    if missing:
        raise _Hindered(f"{who} does not return {missing[0]!r}")
    return {name: supplied[name] for name in letter.secrets}


def _engine(made: Replayable, letter: Letter) -> Engine:
    """The engine for the call: that of the function's own guard, if known."""
    if made.guard is not None:
        return made.guard._engine  # noqa: SLF001 -- the guard's other half
    way = keyed_of(made.function)
    if way is not None:
        return way.engine
    # Its breaker, gate and tokens have settings that are unknown here.
    alone: Any = {"effects": letter.effects, "breaker": False, "gate": False, "tokens": False}
    return Engine(letter.target, alone)


def _under(letters: Letters, letter: Letter, function: Any) -> KeyHold:
    under, way = letter.under, keyed_of(function)
    assert under is not None  # noqa: S101 -- asked before
    return KeyHold(
        OnceTerms(
            keys=letters.store.keys,
            place=Key(letter.target, under.part),
            key=under.key,
            fingerprint=under.fingerprint,
            lease=under.lease,
            ttl=under.ttl,
            dump=None if way is None else way.way.dump,
            load=None if way is None else way.way.load,
        )
    )


def _run(loop: str, session: Session, steps: Steps, *, is_async: bool) -> None:
    if not is_async:
        run(session, steps)
    elif loop == "trio":
        import trio

        trio.run(arun, session, steps)
    else:
        import asyncio

        asyncio.run(arun(session, steps))

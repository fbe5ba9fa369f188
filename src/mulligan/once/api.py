"""Public API of idempotency keys: options of `once` and `once_per`.

A key stands for one operation of the user's, however often it is asked for and by however many
processes. Keys fail closed: if the store cannot say whether it has been done, it is not done.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import update_wrapper
from inspect import unwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from ..calls.callables import ASYNC, ASYNC_GENERATOR, GENERATOR, function_kind, name_of
from ..calls.clock import REAL, world
from ..calls.loop import arun, run
from ..core.duration import Duration, duration_text, seconds
from ..core.failure import Effects
from ..dead_letters.replayable import replayable_of
from ..errors import SettingError
from ..shared.target import store_for
from ..stores.state_machine import Key
from .fingerprint import digest
from .holder import KeyHold, OnceTerms
from .operation import arguments_of, check_object, check_parameters, fingerprint_of, key_of
from .run import KeyedSession, keyed

if TYPE_CHECKING:
    from ..api.engine import Engine
    from ..calls.loop import Steps
    from ..core.policy import Policy

__all__ = ("Once", "aonce", "keyed_of", "new_key", "once", "once_per")

# What servers keep (R-I5); longer where a repeat may come later than that.
_DAY = 86_400.0


def new_key() -> str:
    """A key for one operation that has no name of its own: a random UUID.

    Draw it once, before the first attempt, and keep it with the operation (E-F1): a key that is
    drawn again for a repeat protects nothing.
    """
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Once:
    """How something is done once.

    Args:
        key: What the operation is called, ``"invoice-2026-17"``; None for a hash of target, scope,
            function and arguments.
        scope: Whose operation it is, where the hash is the key: caller, run, step.
        exclude: Parameters that may differ between repeats of one operation: times, clients.
        ttl: How long the result is kept. Default: the policy's `key_ttl`, else a day.
        lease: How long a holder may be silent before another caller may take the key. It is renewed
            while the function runs, so this does not limit the function.
        dump: (answer) → JSON, for answers that are not.
        load: (JSON) → answer, for those who are handed what was kept.

    Raises:
        SettingError: One of them is invalid.
    """

    key: str | None = None
    _: KW_ONLY
    scope: str | tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ttl: Duration | None = None
    lease: Duration = 30.0
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        key: object = self.key  # a caller may have passed anything
        if key is not None and not (isinstance(key, str) and key.isprintable() and key.strip()):
            raise SettingError(
                f"a key needs to be a printable string, such as an order's number or "
                f"mulligan.new_key(); got {self.key!r}"
            )
        for name in ("scope", "exclude"):
            given = getattr(self, name)
            words = (given,) if isinstance(given, str) else tuple(given)
            if not all(isinstance(each, str) for each in words):
                raise SettingError(f"{name} needs strings; got {given!r}")
            object.__setattr__(self, name, words)
        if self.ttl is not None:
            object.__setattr__(self, "ttl", seconds(self.ttl, name="ttl"))
        object.__setattr__(self, "lease", seconds(self.lease, name="lease", least=0.1))
        for name in ("dump", "load"):
            function = getattr(self, name)
            if function is not None and (
                not callable(function) or function_kind(function) == ASYNC
            ):
                raise SettingError(f"{name} needs a plain function; got {function!r}")


def once(
    engine: Engine, key: str | Once, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`function` done once under `key`; a coroutine if it is a coroutine function."""
    way = _way(key)
    _refuse_streams(function)
    if function_kind(function) == ASYNC:
        return arun(*_call(engine, way, (), function, args, kwargs))
    engine.check_timeout(function)
    return run(*_call(engine, way, (), function, args, kwargs))


async def aonce(
    engine: Engine, key: str | Once, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`function` done once under `key`, and awaited."""
    _refuse_streams(function)
    return await arun(*_call(engine, _way(key), (), function, args, kwargs))


def once_per(engine: Engine, parameters: tuple[str, ...], way: Once) -> Callable[[Any], Any]:
    """A decorator for functions that are done once per value of `parameters`."""
    _ttl(engine.settings.policy, way)

    def decorate(function: Any) -> Any:
        if isinstance(function, staticmethod | classmethod):
            raise SettingError(
                f"once_per goes under @{type(function).__name__}: write it on the line below"
            )
        if not callable(function):
            raise SettingError(f"once_per needs the names of parameters; got {function!r}")
        _refuse_streams(function)
        check_parameters(function, parameters, "once_per")
        check_parameters(function, way.exclude, "exclude")
        if not parameters and not way.scope and "self" not in way.exclude:
            check_object(function)
        both = sorted(set(parameters) & set(way.exclude))
        if both:
            raise SettingError(f"{both[0]!r} makes the key and is excluded from it; keep one")
        with suppress(AttributeError):  # a builtin takes no marks; its letters are replayed without
            unwrap(function).__mulligan_once__ = Keyed(engine, way)
        if function_kind(function) == ASYNC:

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                return await arun(*_call(engine, way, parameters, function, args, kwargs))

            return update_wrapper(awaited, function)
        engine.check_timeout(function)
        engine.check_plain(function)

        def plain(*args: Any, **kwargs: Any) -> Any:
            return run(*_call(engine, way, parameters, function, args, kwargs))

        return update_wrapper(plain, function)

    return decorate


class Keyed(NamedTuple):
    """What `once_per` leaves on the function that it decorates, for replays."""

    engine: Engine
    way: Once


def keyed_of(function: Any) -> Keyed | None:
    """How `function` is done once, where a decorator says so."""
    found = getattr(unwrap(function), "__mulligan_once__", None)
    return found if isinstance(found, Keyed) else None


def _call(  # noqa: PLR0917 -- a call, whole
    engine: Engine,
    way: Once,
    parameters: tuple[str, ...],
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[KeyedSession, Steps]:
    """The session of a call under its key and the loop of its attempts, for `run` or `arun`."""
    settings = engine.settings
    arguments = arguments_of(function, args, kwargs)
    scope: Any = way.scope
    key, made = way.key, replayable_of(function)
    # A secret may change between two repeats of one operation.
    exclude = way.exclude if made is None else (*way.exclude, *made.secrets)
    if key is None:
        key = key_of(function, arguments, parameters, exclude, scope, settings.target)
    store = store_for(engine.options.get("store"), settings.policy.store)
    ttl = _ttl(settings.policy, way)
    clock = settings.clock or world().clock
    # Not by the store's salt, which lives in another file: a salt that is lost would free every
    # key. Neither the key nor the scope can be read from it.
    part = digest(["once", engine.options.get("scope", ""), key])
    terms = OnceTerms(
        keys=store.keys,
        place=Key(settings.target, f"once/{part}"),
        key=key,
        fingerprint=fingerprint_of(function, arguments, exclude),
        # In virtual time leases are not renewed, and holders do not die.
        lease=seconds(way.lease) if clock is REAL.clock else ttl,
        ttl=ttl,
        dump=way.dump,
        load=way.load,
    )
    # The key makes a repeat harmless, as far as the function sends it along.
    settings = replace(settings, effects=Effects.KEYED)
    session = KeyedSession(settings, name_of(function), KeyHold(terms))
    return session, keyed(session, function, args, kwargs)


def _way(key: str | Once) -> Once:
    if isinstance(key, Once):
        return key
    if callable(key):
        raise SettingError(
            f"once needs a key before the function: guard.once('order-17', {name_of(key)}, …); "
            f"to decorate a function write @guard.once_per('order_id')"
        )
    return Once(key)


def _ttl(policy: Policy, way: Once) -> float:
    """How long a result is kept.

    Raises:
        SettingError: A repeat may come later than that, and would be a second effect (E-F8).
    """
    longest = max(policy.horizon, policy.bound)
    given = way.ttl if way.ttl is not None else policy.key_ttl
    if given is None:
        return max(_DAY, longest)
    ttl = seconds(given)
    if ttl < longest:
        raise SettingError(
            f"a key is forgotten after {duration_text(ttl)}, but a repeat may come "
            f"{duration_text(longest)} later and would then be a second effect; raise ttl to "
            f"{duration_text(longest)}, or lower the policy's horizon and patience"
        )
    return ttl


def _refuse_streams(function: Any) -> None:
    if function_kind(function) in (GENERATOR, ASYNC_GENERATOR):
        raise SettingError(
            f"{name_of(function)}() is a stream, and a stream has no value to keep; "
            f"collect it in a function, and do that once"
        )

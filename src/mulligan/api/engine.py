"""The engine behind guards and decorators: checked options, ready to run calls.

Loaded with the first decorated function, so nothing of the core or the loop is imported here
before it is needed: at the first failure, or when an option is given that only they can check.

A failure may happen inside an event loop, which stands still while modules are loaded. So what
costs most is loaded before: `dataclasses`, which most programs have loaded anyway, here, and what
the callers of a target share with the first guard that has one.
"""

from __future__ import annotations

import dataclasses  # noqa: F401 -- see above
import os
from functools import partial
from time import monotonic

from ..calls.callables import (
    ASYNC,
    ASYNC_GENERATOR,
    COROUTINE,
    function_kind,
    name_of,
    refuse_unstarted,
)
from ..calls.context import ambient_task, ambient_world
from ..errors import SettingError
from ..shared.target import ALONE, IN_TASK, STORE, target_for, target_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from typing import Any

    from ..calls.session import Session
    from ..calls.settings import CallSettings
    from ..core.shared_settings import Breaker, Gate, Tokens
    from ..shared.gate.fast_path import QuotaFastPath
    from ..shared.guard_target import GuardTarget
    from ..shared.target import Target
    from .options import GuardOptions

    # What is known of the attempt that has failed: the mark before it, when it began, its context.
    Begun = tuple[Any, ...]

__all__ = ("PATHS", "Engine")

# What has to be known about a call that succeeds. calm: nothing. timed: when it began. known: that
# it is under way. observed: what the answer says about limits. watched: all of it.
PATHS = ("calm", "timed", "known", "observed", "watched")

# Options that can be checked here, without the core.
_LIGHT = {"effects", "context"}
_EFFECTS = (None, "read", "idempotent", "keyed", "unsafe")


class Engine:
    """Options made ready to drive calls; the settings are resolved when first needed.

    They are resolved at once if an option is given that only the core can check, so that a
    mistake shows where it was written, not at the first failure in production.
    """

    __slots__ = (
        "_checked",
        "_settings",
        "deadline",
        "fast_path",
        "is_calm",
        "metadata",
        "options",
        "path",
        "shared",
        "sharing",
        "target",
    )

    def __init__(self, target: str, options: GuardOptions) -> None:
        if not isinstance(target, str):
            raise SettingError(
                f"a guard needs the name of its target first; got {target!r} "
                f"(to guard one function write @mulligan.retry)"
            )
        self.target = target
        self.metadata = options.get("metadata") or {}
        self.options = options
        self._settings: CallSettings | None = None
        self.sharing: GuardTarget | None = None
        self.fast_path: QuotaFastPath | None = None
        self.deadline: float | None = None
        self.path = "known" if options.get("context") else "calm"
        # What the callers of the target share; a test's world has targets of its own.
        self.shared = ALONE
        if not options.keys() <= _LIGHT or options.get("effects") not in _EFFECTS:
            self._check_names()
            settings = self.settings
            self.deadline = settings.policy.deadline
            if settings.timeout_to:
                self._checked = _Checked()
            if (
                settings.judge is not None
                or settings.timeouts is not None
                or settings.admissions
                or settings.estimate is not None
                or settings.spent is not None
                or settings.wants_successes
                or self._measures_slow_calls()
            ):
                self.path = "watched"
            elif settings.observe is not None:
                is_plain = self.path == "calm" and self.deadline is None
                self.path = "observed" if is_plain else "watched"
                self.fast_path = getattr(settings.observe, "fast_path", None)
            elif self.deadline is not None:
                # A clock of one's own is for tests; the calm paths read the machine's.
                is_plain = self.path == "calm" and settings.clock is None
                self.path = "timed" if is_plain else "watched"
        elif target:
            self._settle()
        self.is_calm = self.path == "calm"

    def _measures_slow_calls(self) -> bool:
        """Whether the breaker must know how long successes take."""
        breaker = None if self.sharing is None else self.sharing.settings.breaker
        return breaker is not None and breaker.slow is not None

    def _settle(self) -> None:
        """Join the target of a guard that was given no settings."""
        from ..shared import guard_target as sharing  # noqa: F401 -- before a failure needs it

        self.shared = target_for(self.target, "")
        shared = self.here()
        shared.has_default = True
        if shared.state is not None or os.environ.get(STORE):
            _ = self.settings  # another guard has settings: they must be the same

    def here(self) -> Target:
        """The target, in the world around the call."""
        shared = self.shared
        if shared is not ALONE and self.options.get("store") is None:
            world = ambient_world.get()
            if world is not None and world.store is not None:
                return target_in(world.store, shared.name, shared.scope)
        return shared

    def _check_names(self) -> None:
        from .options import OPTIONS, OTHER_WORDS, SHARED

        unknown = sorted(self.options.keys() - OPTIONS)
        if unknown:
            name = unknown[0]
            if name in OTHER_WORDS:
                raise SettingError(f"no option {name!r}; {OTHER_WORDS[name]}")
            from ..core.suggestions import nearest

            raise SettingError(f"no option {name!r}; {nearest(name, sorted(OPTIONS))}")
        if not self.target:
            for name in SHARED:
                if self.options.get(name):
                    raise SettingError(
                        f"{name} belongs to a target, and this call has none; "
                        f'write mulligan.Guard("name", {name}=…)'
                    )

    @property
    def settings(self) -> CallSettings:
        settings = self._settings
        if settings is None:
            from .defaults import resolve

            settings, self.sharing = resolve(self.target, self.options)
            if self.sharing is not None:
                self.sharing.join()
                self.shared = self.sharing.target
            self._settings = settings
        return settings

    def adjust(self, **changes: Breaker | Gate | Tokens | None) -> None:
        """Change what the callers of the target go by."""
        _ = self.settings  # they are resolved by now
        if self.sharing is None:
            raise SettingError(
                f"Guard({self.target!r}) shares nothing that could be adjusted; "
                f"it needs a target, and a breaker, a gate or tokens"
            )
        self.sharing.adjust(**changes)

    def around(self) -> Target:
        """The target of a call with a world or a task around it; see `surroundings`."""
        return self.here() if ambient_task.get() is None else IN_TASK

    @staticmethod
    def now() -> float:
        """The time in the world around the call."""
        world = ambient_world.get()
        return monotonic() if world is None else world.clock.now()

    def session(self, function: Callable[..., Any]) -> Session:
        """The session of a call of which no attempt has been made."""
        return _drivers().Session(self.settings, name_of(function))

    # An attempt has been made and has failed

    def recover(self, function: Any, args: Any, kwargs: Any, error: Exception, begun: Begun) -> Any:
        drivers = _loaded or _drivers()
        session = drivers.Session(self._settings or self.settings, name_of(function), *begun)
        try:
            steps = drivers.attempts(session, function, args, kwargs, error)
            return drivers.run(session, steps)
        finally:
            del error

    async def arecover(
        self, function: Any, args: Any, kwargs: Any, error: Exception, begun: Begun
    ) -> Any:
        drivers = _loaded or _drivers()
        session = drivers.Session(self._settings or self.settings, name_of(function), *begun)
        try:
            steps = drivers.attempts(session, function, args, kwargs, error)
            return await drivers.arun(session, steps)
        finally:
            del error

    # An attempt has been made unasked and has succeeded, but its answer says something new

    def observe_answer(self, function: Any, answer: Any, mark: int) -> Any:
        refuse_unstarted(answer, name_of(function))
        session = (_loaded or _drivers()).Session(self.settings, name_of(function), mark)
        if session.admissions is not None:
            session.admissions.observe(answer)
        session.succeeded()
        return answer

    # An attempt that began while all was calm has succeeded, and others have failed meanwhile

    def tell_success(self, function: Any, mark: int) -> None:
        drivers = _loaded or _drivers()
        drivers.Session(self._settings or self.settings, name_of(function), mark).succeeded()

    # A plain function has returned something that is not known to be a result, or others have
    # failed meanwhile

    def returned(self, function: Any, args: Any, kwargs: Any, mark: int, answer: Any) -> Any:
        """`answer`, told where others have failed; a coroutine that guards it if it is one."""
        if answer.__class__ is COROUTINE:
            return self.guard_coroutine(function, args, kwargs, mark, answer)
        refuse_unstarted(answer, name_of(function))
        if not self.here().is_calm:
            self.tell_success(function, mark)
        return answer

    def guard_coroutine(self, function: Any, args: Any, kwargs: Any, mark: int, begun: Any) -> Any:
        """A coroutine that guards the coroutine `begun`."""
        if self.is_calm:
            return self._guard_coroutine(function, args, kwargs, mark, begun)
        drivers = _drivers()
        now = drivers.world().clock.now()
        session = drivers.Session(self.settings, name_of(function), mark, now)
        session.pending = begun
        return drivers.arun(session, drivers.attempts(session, function, args, kwargs))

    async def _guard_coroutine(
        self, function: Any, args: Any, kwargs: Any, mark: int, begun: Any
    ) -> Any:
        try:
            answer = await begun
        except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
            error = caught
        else:
            if not self.here().is_calm:
                self.tell_success(function, mark)
            return answer
        try:
            return await self.arecover(function, args, kwargs, error, (mark,))
        finally:
            del error

    # Watched from the start

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        self.check_timeout(function)
        drivers = _loaded or _drivers()
        session = drivers.Session(self.settings, name_of(function))
        return drivers.run(session, drivers.attempts(session, function, args, kwargs))

    async def arun(self, function: Any, args: Any, kwargs: Any) -> Any:
        self.check_parameter(function)
        drivers = _loaded or _drivers()
        session = drivers.Session(self.settings, name_of(function))
        return await drivers.arun(session, drivers.attempts(session, function, args, kwargs))

    def stream(self, function: Any, args: Any, kwargs: Any) -> Generator[Any, Any, Any]:
        self.check_timeout(function)
        self.check_stream(function)
        resume = self.options.get("resume")
        if resume is not None and function_kind(resume) in (ASYNC, ASYNC_GENERATOR):
            raise SettingError(
                f"resume is async, and the stream {name_of(function)}() is not: use astream(), or "
                f"make resume a plain function"
            )
        from ..calls.streams import stream, streaming

        session = self.session(function)
        return stream(session, streaming(session, function, args, kwargs))

    def astream(self, function: Any, args: Any, kwargs: Any) -> AsyncGenerator[Any, Any]:
        self.check_parameter(function)
        self.check_stream(function)
        from ..calls.streams import astream, streaming

        session = self.session(function)
        return astream(session, streaming(session, function, args, kwargs))

    def check_parameter(self, function: Any) -> None:
        """Refuse a function that does not take the parameter which `timeout_to` names."""
        name = self.options.get("timeout_to")
        if not name:
            return
        while isinstance(function, partial):
            function = function.func
        # A method is a new object every time; what it is made of stays.
        function = getattr(function, "__func__", function)
        if function in self._checked:
            return
        _check_parameter(function, name)
        self._checked.add(function)

    def check_plain(self, function: Any) -> None:
        """Refuse coroutine functions where a plain call could not await them."""
        for name in ("verify", "fallback"):
            helper = self.options.get(name)
            if callable(helper) and function_kind(helper) == ASYNC:
                raise SettingError(
                    f"{name} is a coroutine function, and {name_of(function)}() is not: "
                    f"make both plain, or both coroutine functions"
                )

    def check_stream(self, function: Any) -> None:
        """Refuse what means nothing for a stream."""
        settings = self._settings
        if settings is None:
            return
        if settings.resume is not None:
            self.check_parameter(settings.resume)
        if settings.judge is not None:
            raise SettingError(
                f"judge looks at an answer, and the stream {name_of(function)}() has none"
            )
        fallback = settings.fallback
        if "fallback" in self.options and not callable(fallback):
            try:
                iter(fallback)
            except TypeError:
                raise SettingError(
                    f"the fallback of the stream {name_of(function)}() needs to be iterable, or a "
                    f"function of the error that returns an iterable; got {fallback!r}"
                ) from None

    def check_timeout(self, function: Any) -> None:
        """Refuse what cannot be kept: nothing can stop a plain function that runs too long."""
        if self._settings is None:
            return
        self.check_parameter(function)
        timeouts = self._settings.timeouts
        if timeouts is not None and timeouts.total and not self.options.get("timeout_to"):
            raise SettingError(
                f"timeout cannot stop the plain function {name_of(function)}(): a thread left "
                f"running plus a retry would be two effects; name the parameter it takes a limit "
                f'by, timeout_to="timeout", or make it a coroutine function'
            )


def _check_parameter(function: Any, name: str) -> None:
    from inspect import Parameter, signature

    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # a builtin without a signature: it will say so itself
        return
    if name not in parameters and all(
        each.kind is not Parameter.VAR_KEYWORD for each in parameters.values()
    ):
        raise SettingError(
            f"timeout_to names {name!r}, which {name_of(function)}() does not take; "
            f"it takes {', '.join(parameters) or 'nothing'}"
        )


class _Checked:
    """Functions whose signature has been checked, by weak reference."""

    def __init__(self) -> None:
        from weakref import WeakSet

        self._functions: WeakSet[Any] = WeakSet()

    def __contains__(self, function: Any) -> bool:
        try:
            return function in self._functions
        except TypeError:  # neither hashed nor referred to weakly: looked at every time
            return False

    def add(self, function: Any) -> None:
        try:
            self._functions.add(function)
        except TypeError:
            return


class _Drivers:
    """What failures need, loaded with the first one."""

    def __init__(self) -> None:
        from ..calls import clock, loop, session

        self.Session, self.world = session.Session, clock.world
        self.attempts, self.run, self.arun = loop.attempts, loop.run, loop.arun


_loaded: _Drivers | None = None


def _drivers() -> _Drivers:
    global _loaded  # noqa: PLW0603 -- an import statement on every failure costs more than the failure
    if _loaded is None:
        _loaded = _Drivers()
    return _loaded

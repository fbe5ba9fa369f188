"""Guard: retries calls to one dependency, with the settings and the shared state of its target."""

from __future__ import annotations

from ..calls.callables import known_results, name_of, refuse_unstarted
from ..calls.context import endings, surroundings
from ..errors import SettingError
from .engine import Engine
from .fast_path import async_observed, plain_observed, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        Awaitable,
        Callable,
        Iterable,
    )
    from typing import Any, ParamSpec, TypeVar, Unpack

    from ..calls.guarded_streams import GuardedAsyncStream, GuardedStream
    from ..core.policy import Policy
    from ..core.shared_settings import Breaker, Gate, Tokens
    from ..once.api import Once
    from .attempts import Attempts
    from .options import GuardOptions, OnceOptions

    C = TypeVar("C")
    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    T = TypeVar("T")

__all__ = ("Guard",)


class Guard:
    """One dependency, and how calls to it get their second chance.

    Make one a dependency, keep it, and share it: it holds no state of any single call. With every
    other guard of the same target, scope and store it shares a breaker, a gate and retry tokens.

    Args:
        target: The dependency's name, ``"anthropic"``; it stands in events, stories and errors.
        **options: See `GuardOptions`.

    Raises:
        SettingError: An invalid option.
    """

    __slots__ = ("_engine", "target")

    def __init__(self, target: str = "", **options: Unpack[GuardOptions]) -> None:
        self.target = target
        self._engine = Engine(target, options)

    @property
    def policy(self) -> Policy:
        """The rules this guard goes by."""
        return self._engine.settings.policy

    def but(self, **options: Unpack[GuardOptions]) -> Guard:
        """A guard of the same target with these options changed; both share the target's state."""
        changed: Any = {**self._engine.options, **options}
        return Guard(self.target, **changed)

    def wrap(self, client: C, /, *, keys: bool = False) -> C:
        """A view of `client` whose requests this guard retries, with the client's own retries off.

        Takes clients of httpx, httpx2, requests, openai, anthropic and google-genai, and chat
        models of LangChain. `client` itself is not changed; wrapping a view again is harmless.

        Args:
            client: The client. The view has its type, shares its connections, and keeps it alive.
            keys: Whether to send an ``Idempotency-Key`` with each POST and PATCH that would be
                unsafe to repeat, the same on every attempt. For servers that honour it.

        Raises:
            SettingError: This kind of client cannot be guarded that way; says how it can.
        """
        from importlib import import_module

        # By name: adapters stand above this layer, and load only when a client is wrapped.
        adapters = import_module("mulligan.adapters.wrap")
        return adapters.wrap(self, client, keys=keys)  # type: ignore[no-any-return]

    def retry(self, function: F, /) -> F:
        """Decorate a function, coroutine function, generator or async generator function."""
        return wrap(self._engine, function)  # type: ignore[no-any-return]

    def __call__(self, function: F, /, *args: object, **kwargs: object) -> F:
        """Decorate a function, as `retry` does: ``@guard``.

        Raises:
            SettingError: It was meant to be called: that is `call`.
        """
        if args or kwargs or not callable(function):
            raise SettingError(
                f"a guard decorates: @guard; to call a function write "
                f"guard.call(function, …); got {function!r}"
            )
        return self.retry(function)

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` with these arguments, as often as it takes and is allowed."""
        engine = self._engine
        here: Any = engine.around() if surroundings.exist else engine.shared
        if engine.is_calm and here.is_calm:
            mark = endings.count
            try:
                answer: Any = function(*args, **kwargs) if kwargs else function(*args)  # type: ignore[call-arg]
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error = caught
            else:
                if here.is_calm and answer.__class__ in known_results:
                    return answer  # type: ignore[no-any-return]
                return engine.returned(function, args, kwargs, mark, answer)  # type: ignore[no-any-return]
            try:
                return engine.recover(function, args, kwargs, error, (mark,))  # type: ignore[no-any-return]
            finally:
                del error
        if engine.path == "observed":
            return plain_observed(engine, function)(*args, **kwargs)  # type: ignore[no-any-return]
        return engine.run(function, args, kwargs)  # type: ignore[no-any-return]

    async def acall(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call and await `function` with these arguments, as often as it takes and is allowed."""
        engine = self._engine
        here: Any = engine.around() if surroundings.exist else engine.shared
        if engine.is_calm and here.is_calm:
            mark = endings.count
            try:
                answer: Any = function(*args, **kwargs) if kwargs else function(*args)  # type: ignore[call-arg]
                if hasattr(answer, "__await__"):  # a plain function is welcome, too
                    answer = await answer
            except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
                error = caught
            else:
                if here.is_calm and answer.__class__ in known_results:
                    return answer  # type: ignore[no-any-return]
                refuse_unstarted(answer, name_of(function))
                if not here.is_calm:
                    engine.tell_success(function, mark)
                return answer  # type: ignore[no-any-return]
            try:
                return await engine.arecover(function, args, kwargs, error, (mark,))  # type: ignore[no-any-return]
            finally:
                del error
        if engine.path == "observed":
            return await async_observed(engine, function)(*args, **kwargs)  # type: ignore[no-any-return]
        return await engine.arun(function, args, kwargs)  # type: ignore[no-any-return]

    def stream(
        self, function: Callable[P, Iterable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> GuardedStream[T]:
        """The items of `function`'s stream; in a ``with`` statement its source is closed, too.

        A stream that has delivered nothing restarts unseen. One that has delivered something is
        committed: if it breaks, its error says how far it came, and it is never replayed.
        """
        from ..calls.guarded_streams import GuardedStream

        return GuardedStream(self._engine.stream(function, args, kwargs))

    def astream(
        self,
        function: Callable[P, AsyncIterable[T] | Awaitable[AsyncIterable[T]]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> GuardedAsyncStream[T]:
        """Like `stream`, for async iterables and for coroutines that return one."""
        from ..calls.guarded_streams import GuardedAsyncStream

        return GuardedAsyncStream(self._engine.astream(function, args, kwargs))

    def once(
        self, key: str | Once, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do something once under `key`, however often and by whomever it is asked for.

        The first caller calls `function`, as `call` would; concurrent callers wait for its
        result, later callers get it. A failure is not stored.

        Args:
            key: The operation's name, `mulligan.new_key()`, or `Once` for everything else.
            function: What to call. It finds the key in ``mulligan.current().key``.
            *args: Its arguments; others under the same key are a mistake.
            **kwargs: Its keyword arguments.

        Raises:
            KeyReused: The key stands for another operation.
            KeyBusy: Another caller is at it and did not end in time.
            NotKept: It was done, but its result is not JSON.
            StoreDown: It is unknown whether it has been done.
        """
        from ..once.api import once

        return once(self._engine, key, function, args, kwargs)  # type: ignore[no-any-return]

    async def aonce(
        self,
        key: str | Once,
        function: Callable[P, Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like `once`, for coroutine functions."""
        from ..once.api import aonce

        return await aonce(self._engine, key, function, args, kwargs)  # type: ignore[no-any-return]

    def once_per(self, *parameters: str, **options: Unpack[OnceOptions]) -> Callable[[F], F]:
        """Decorate a function that is done once per value of these parameters.

        Without any, it is done once for all its arguments together. Other arguments under the
        same key are a mistake, unless `exclude` names them.

        Args:
            *parameters: Names of parameters; ``self.account`` for what an argument has. The object
                of a method counts by its class, unless it is named.
            **options: See `Once`.
        """
        from ..once.api import Once, once_per

        return once_per(self._engine, parameters, Once(**options))

    def attempts(self, name: str = "block") -> Attempts:
        """Blocks instead of functions: ``for attempt in guard.attempts(): with attempt: …``."""
        from .attempts import Attempts

        return Attempts(self._engine, name)

    def adjust(
        self,
        *,
        breaker: Breaker | None = None,
        gate: Gate | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Change what the callers of this target go by, from now on, in this process.

        Every guard of the same target, scope and store goes by it; None leaves one as it is.
        """
        self._engine.adjust(breaker=breaker, gate=gate, tokens=tokens)

    def __reduce__(self) -> tuple[object, ...]:
        return _made, (self.target, self._engine.options)

    def __repr__(self) -> str:
        return f"Guard({self.target!r})"


def _made(target: str, options: GuardOptions) -> Guard:
    return Guard(target, **options)

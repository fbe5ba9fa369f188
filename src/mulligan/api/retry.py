"""The decorator `retry`, and `call`, `acall` and `attempts` for calls without a guard."""

from __future__ import annotations

from typing import overload

from ..errors import SettingError
from .engine import Engine
from .fast_path import wrap
from .guard import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, ParamSpec, Protocol, TypeVar, Unpack

    from .attempts import Attempts
    from .options import Options

    F = TypeVar("F", bound=Callable[..., Any])
    P = ParamSpec("P")
    T = TypeVar("T")
    D = TypeVar("D")
    D_co = TypeVar("D_co", covariant=True)

    class WithFallback(Protocol[D_co]):
        """A decorator whose functions may return the fallback instead."""

        @overload
        def __call__(
            self, function: Callable[P, Coroutine[Any, Any, T]], /
        ) -> Callable[P, Coroutine[Any, Any, T | D_co]]: ...
        @overload
        def __call__(self, function: Callable[P, T], /) -> Callable[P, T | D_co]: ...


__all__ = ("acall", "attempts", "call", "retry")


@overload
def retry(function: F, /) -> F: ...
@overload
def retry(*, fallback: Callable[[Exception], D], **options: Unpack[Options]) -> WithFallback[D]: ...
@overload
def retry(*, fallback: D, **options: Unpack[Options]) -> WithFallback[D]: ...
@overload
def retry(**options: Unpack[Options]) -> Callable[[F], F]: ...
def retry(function: Any = None, /, **options: Any) -> Any:
    """Give a function its second chance: classified, bounded, explained.

    What is retried is what the classifier knows to pass by itself; unknown errors are raised at
    once, and so is what may have been applied, unless `effects` says that repeating is harmless.
    The caller gets its own exception, with the story on it (`mulligan.story`).

    Works on functions, coroutine functions, generators and async generators, as ``@retry`` and as
    ``@retry(effects="read", …)``. Without a target there is no breaker, no gate and no shared
    state; for those make a `Guard`.

    Args:
        function: What to decorate.
        **options: See `Options`.
    """
    engine = Engine("", options)  # type: ignore[arg-type]
    if isinstance(function, type) and issubclass(function, BaseException):
        raise SettingError(
            f"to retry after {function.__name__} write retry(on={function.__name__})"
        )
    if function is not None:
        return wrap(engine, function)
    return lambda decorated: wrap(engine, decorated)


_guard = Guard()


def call(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `function` with these arguments under the default policy; options need a `Guard`."""
    return _guard.call(function, *args, **kwargs)


async def acall(function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call and await `function` under the default policy; options need a `Guard`."""
    return await _guard.acall(function, *args, **kwargs)


def attempts(name: str = "block", **options: Unpack[Options]) -> Attempts:
    """Blocks instead of functions: ``for attempt in mulligan.attempts(): with attempt: …``."""
    return Guard(**options).attempts(name)

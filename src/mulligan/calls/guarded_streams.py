"""Guarded streams as callers get them: iterators, and context managers that close the source."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType
    from typing import Self

T = TypeVar("T")

__all__ = ("GuardedAsyncStream", "GuardedStream")


class GuardedStream(Generator[T, Any, Any]):
    """The items of a guarded stream, and a context manager that closes its source.

    Args:
        items: The generator of `streams.stream`.
    """

    __slots__ = ("__weakref__", "items")

    def __init__(self, items: Generator[T, Any, Any]) -> None:
        self.items = items

    def __next__(self) -> T:
        return next(self.items)

    def send(self, value: Any, /) -> T:
        return self.items.send(value)

    def throw(self, *thrown: Any) -> T:
        return self.items.throw(*thrown)

    def close(self) -> None:
        """Close the stream and its source. Harmless if it has ended or was closed."""
        self.items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()


class GuardedAsyncStream(AsyncGenerator[T, Any]):
    """Like `GuardedStream`, for ``async for`` and ``async with``."""

    __slots__ = ("__weakref__", "items")

    def __init__(self, items: AsyncGenerator[T, Any]) -> None:
        self.items = items

    def __anext__(self) -> Coroutine[Any, Any, T]:
        return self.items.__anext__()

    def asend(self, value: Any, /) -> Coroutine[Any, Any, T]:
        return self.items.asend(value)

    def athrow(self, *thrown: Any) -> Coroutine[Any, Any, T]:
        return self.items.athrow(*thrown)

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Close the stream and its source. Harmless if it has ended or was closed."""
        return self.items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        await self.aclose()

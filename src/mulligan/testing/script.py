"""Scripted: a callable that fails as told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("Scripted", "status_error")


class Scripted:
    """A function that gives these outcomes in turn: exceptions are raised, values returned.

    The last outcome repeats, as a server that stays down does. Use it as a plain function, or
    its `acall` as a coroutine function.

    Args:
        *outcomes: Exceptions and values.

    Attributes:
        calls: The arguments of every call so far.
    """

    __name__ = "scripted"

    def __init__(self, *outcomes: Any) -> None:
        self._outcomes = outcomes
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        outcome = self._outcomes[min(len(self.calls), len(self._outcomes)) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)


class _StatusError(Exception):
    """An HTTP error in the shape that SDKs give theirs."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str], body: Any) -> None:
        super().__init__(message)
        self.status_code, self.headers, self.body = status, headers, body


def status_error(
    status: int,
    message: str = "",
    *,
    headers: Mapping[str, str] | None = None,
    body: Any = None,
) -> Exception:
    """An exception as an SDK would raise for this HTTP answer."""
    return _StatusError(status, message or f"status {status}", headers or {}, body)

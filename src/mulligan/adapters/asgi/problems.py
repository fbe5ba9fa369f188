"""Answers errors with problem documents: a middleware for ASGI, a handler for Starlette."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...calls.notes import story
from ...core.decisions import Ending
from ...core.redaction import presentable
from ...errors import KeyReused, NotAdmitted, NotKept, StoreError
from ..problem import ProblemDocument, problem

if TYPE_CHECKING:
    from .messages import App, Message, Receive, Scope, Send

__all__ = ("ProblemMiddleware", "problem_handler")


class ProblemMiddleware:
    """Answers what Mulligan raised, or gave up on, with a problem document.

    A circuit that is open, a limit that is reached and a dependency that failed become a 502, 503
    or 504 with ``Retry-After`` where the time is known. Every other exception passes untouched,
    and so does one that comes after the response has begun.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_begun = False

        async def sent(message: Message) -> None:
            nonlocal is_begun
            is_begun = is_begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            if is_begun or not _is_known(error):
                raise
            _log(error)
            await problem(error)(scope, receive, send)


def problem_handler(request: object, error: Exception) -> ProblemDocument:  # noqa: ARG001 -- as Starlette calls it
    """An exception handler for Starlette and FastAPI.

    ``Starlette(exception_handlers={mulligan.MulliganError: problem_handler})``
    """
    _log(error)
    return problem(error)


def _is_known(error: Exception) -> bool:
    """Whether Mulligan has something to say about `error`; bugs are left to the server."""
    if isinstance(error, KeyReused | NotAdmitted | NotKept | StoreError):
        return True
    tale = story(error)
    return tale is not None and tale.ending not in (Ending.UNKNOWN, Ending.CANCELLED)


def _log(error: Exception) -> None:
    """Log the masked error for the operator; the client gets only the status."""
    import logging

    tale = story(error)
    said = presentable(f"{type(error).__name__}: {error}")
    note = f"; {tale.note}" if tale is not None else ""
    logging.getLogger("mulligan").warning("a request failed: %s%s", said, note)

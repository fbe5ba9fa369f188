"""A health endpoint: 200 while the server takes requests, 503 with Retry-After while it drains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.duration import Duration, seconds
from ..problem import problem

if TYPE_CHECKING:
    from .messages import Receive, Scope, Send

__all__ = ("Health",)


class Health:
    """An ASGI application for a load balancer to ask: ``Mount("/health", health)``.

    Call `drain` when the server is about to stop, before it closes its sockets: from a handler of
    SIGTERM, or a hook that the orchestrator runs first. Requests are still served meanwhile.
    """

    def __init__(self) -> None:
        self._retry_after: float | None = None

    @property
    def is_draining(self) -> bool:
        return self._retry_after is not None

    def drain(self, retry_after: Duration = 30.0) -> None:
        """Answer 503 from now on; `retry_after` is when another server is expected."""
        self._retry_after = seconds(retry_after, name="retry_after")

    def resume(self) -> None:
        """Answer 200 again."""
        self._retry_after = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"Health answers http requests; got a scope of type {scope['type']}")
        wait = self._retry_after
        if wait is not None:
            draining = problem(
                503, "the server is shutting down", title="Draining", retry_after=wait
            )
            await draining(scope, receive, send)
            return
        body = b'{"status": "ok"}'
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"no-store"),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

"""A server that takes orders: order_server.py SERVER PORT STORE LOG SECONDS LEASE.

It writes a line into LOG when it begins an order, takes SECONDS for it, and answers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from mulligan.adapters.asgi import IdempotencyMiddleware

SERVER, PORT, STORE, LOG, SECONDS, LEASE = sys.argv[1:]


def begun(what: str) -> None:
    with Path(LOG).open("a", encoding="utf-8") as log:
        log.write(f"{what} {os.getpid()}\n")


async def order(request: Request) -> JSONResponse:
    begun("order")
    await asyncio.sleep(float(SECONDS))
    return JSONResponse({"order": await request.json(), "by": os.getpid()}, status_code=201)


async def tokens(_request: Request) -> StreamingResponse:
    async def words() -> Any:
        begun("tokens")
        for number in range(3):
            yield f"data: {number}\n\n"
            await asyncio.sleep(0.3)

    return StreamingResponse(words(), media_type="text/event-stream")


async def passing(request: Request, call_next: Any) -> Any:
    """Makes a stream of every response, as such middlewares do."""
    return await call_next(request)


app = Starlette(
    routes=[
        Route("/orders", order, methods=["POST"]),
        Route("/tokens", tokens, methods=["POST"]),
    ],
    middleware=[
        Middleware(
            IdempotencyMiddleware,
            caller=lambda scope: dict(scope["headers"])[b"x-account"].decode(),
            store=STORE,
            lease=float(LEASE),
        ),
        Middleware(BaseHTTPMiddleware, dispatch=passing),
    ],
)


if __name__ == "__main__":
    if SERVER == "uvicorn":
        import uvicorn

        uvicorn.run(app, host="127.0.0.1", port=int(PORT), log_level="error")
    else:
        from hypercorn.asyncio import serve
        from hypercorn.config import Config

        config = Config()
        config.bind, config.loglevel = [f"127.0.0.1:{PORT}"], "ERROR"
        asyncio.run(serve(app, config))  # type: ignore[arg-type]

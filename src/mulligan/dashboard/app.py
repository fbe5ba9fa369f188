"""The ASGI application: routes, checks and answers."""

from __future__ import annotations

import json
import mimetypes
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from ..core.duration import seconds
from ..errors import MulliganError, SettingError
from .access import HEADERS
from .feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .access import Access
    from .actions import Actions
    from .sources import Sources

__all__ = ("CheckedApp", "make_app")

_STATIC = files("mulligan.dashboard") / "static"
_FILES = frozenset(
    {
        *("app.css", "icon.svg", "app.js", "dom.js", "format.js"),
        *("runs.js", "charts.js", "targets.js", "failures.js"),
    }
)

# Rows of one page of the list, and bytes of a request that changes something.
_ROWS, _BODY = 100, 16_384

# A year: the cookie's value is worthless once the server has ended.
_COOKIE_AGE = 31_536_000


class CheckedApp:
    """Checks every request before it is routed, and puts the headers on every answer.

    `close` ends the connections that would never end by themselves.
    """

    def __init__(self, app: ASGIApp, access: Access, close: Callable[[], None]) -> None:
        self._app, self._access, self.close = app, access, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        query = parse_qs(scope["query_string"].decode("latin-1"))
        is_login = (scope["path"] == "/" and "token" in query) or scope["path"] == "/static/app.css"
        is_login = is_login and scope["method"] in {"GET", "HEAD"}
        refusal = self._access.refusal(scope["method"], Headers(scope=scope), is_login=is_login)
        if refusal is None:
            await self._app(scope, receive, headed)
            return
        told: Response = JSONResponse(
            {"error": refusal.error, "hint": refusal.hint}, status_code=refusal.status
        )
        if scope["path"] == "/" and refusal.status == 401:
            told = HTMLResponse(_page("login.html"), status_code=401)
        await told(scope, receive, headed)


def _page(name: str, **words: str) -> str:
    text = (_STATIC / name).read_text(encoding="utf-8")
    for key, value in words.items():
        text = text.replace("{{" + key + "}}", value)
    return text


class _Endpoints:
    """The answers of the server, one method per route. What reads a store is run in a thread."""

    def __init__(self, sources: Sources, actions: Actions, access: Access) -> None:
        self._sources, self._actions, self._access = sources, actions, access
        self.feed = Feed(sources)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.index),
            Route("/static/{name}", self.static),
            Route("/api/about", self.about),
            Route("/api/runs", self.runs),
            Route("/api/runs/{run}", self.run),
            Route("/api/runs/{run}/log", self.log),
            Route("/api/targets", self.targets),
            Route("/api/failures", self.failures),
            Route("/api/stories", self.stories),
            Route("/api/letters", self.letters),
            Route("/api/events", self.events),
            Route("/api/actions/{name}", self.action, methods=["POST"]),
        ]

    async def index(self, request: Request) -> Response:
        given = request.query_params.get("token")
        if given is None:
            known = self._access.is_known(request.headers)
            is_writable = known and not self._access.is_read_only
            return HTMLResponse(_page("index.html", csrf=self._access.csrf if is_writable else ""))
        if not self._access.is_token(given):
            return HTMLResponse(_page("login.html"), status_code=401)
        rest = [each for each in request.query_params.multi_items() if each[0] != "token"]
        answer = RedirectResponse(f"/?{urlencode(rest)}" if rest else "/", status_code=303)
        answer.set_cookie(
            self._access.cookie,
            given,
            max_age=_COOKIE_AGE,
            httponly=True,
            samesite="strict",
            path="/",
        )
        return answer

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return _missing("file")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response((_STATIC / name).read_bytes(), media_type=kind)

    def about(self, request: Request) -> Response:
        is_known = self._access.is_known(request.headers)
        return JSONResponse(
            {
                "now": self._sources.now(),
                "version": version("mulligan"),
                "may_change": is_known and not self._access.is_read_only,
                "is_read_only": self._access.is_read_only,
                "folder": str(self._sources.index.runs.folder),
            }
        )

    def runs(self, request: Request) -> Response:
        query = request.query_params
        rows, total = self._sources.index.page(
            limit=_whole(query.get("limit"), 1, _ROWS, _ROWS),
            offset=_whole(query.get("offset"), 0, 10**9, 0),
            status=query.get("status", ""),
            words=query.get("q", "")[:200],
        )
        index, now = self._sources.index, self._sources.now()
        found = {"rows": rows, "total": total, "counts": index.counts(), "now": now}
        return JSONResponse({**found, "is_whole": index.is_whole})

    def run(self, request: Request) -> Response:
        found = self._sources.index.detail(request.path_params["run"])
        if found is None:
            return _missing("run")
        return JSONResponse({**found, "now": self._sources.now()})

    def log(self, request: Request) -> Response:
        query = request.query_params
        attempt = _whole(query.get("attempt"), 1, 10**6, 1)
        stream = query.get("stream", "out")
        found = self._sources.index.log(request.path_params["run"], attempt, stream)
        return _missing("log") if found is None else JSONResponse(found)

    def targets(self, _request: Request) -> Response:
        return JSONResponse({**self._sources.targets(), "now": self._sources.now()})

    def failures(self, request: Request) -> Response:
        try:
            span = seconds(request.query_params.get("since", "1h"), name="since", least=60)
        except SettingError as error:
            return JSONResponse({"error": str(error), "hint": "since=24h"}, status_code=400)
        return JSONResponse(self._sources.failures(span))

    def stories(self, _request: Request) -> Response:
        return JSONResponse({"stories": self._sources.stories()})

    def letters(self, _request: Request) -> Response:
        return JSONResponse({"letters": self._sources.letters()})

    async def action(self, request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _BODY:
                return JSONResponse({"error": "the request is too long"}, status_code=413)
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            wrong = {"error": "the request needs a JSON object", "hint": '{"run": "k3fqzz"}'}
            return JSONResponse(wrong, status_code=400)
        try:
            done = await run_in_threadpool(self._actions.do, request.path_params["name"], given)
        except SettingError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        if isinstance(given.get("run"), str):
            await run_in_threadpool(self._sources.index.touch, given["run"])
        return JSONResponse(done._asdict(), status_code=200 if done.is_done else 409)

    async def events(self, _request: Request) -> Response:
        return StreamingResponse(self.feed.pages(), media_type="text/event-stream")


def make_app(sources: Sources, actions: Actions, access: Access) -> CheckedApp:
    """The application."""
    endpoints = _Endpoints(sources, actions, access)
    app = Starlette(routes=endpoints.routes(), exception_handlers={MulliganError: _unreadable})
    return CheckedApp(app, access, endpoints.feed.close)


async def _unreadable(_request: Request, trouble: Exception) -> Response:
    """The answer where a journal or a store cannot be read."""
    return JSONResponse(
        {"error": str(trouble), "hint": "mulligan doctor checks the journal"}, status_code=503
    )


def _missing(what: str) -> Response:
    return JSONResponse({"error": f"no such {what}"}, status_code=404)


def _whole(text: Any, least: int, most: int, otherwise: int) -> int:
    """A number in a query; an invalid one counts as the default."""
    try:
        return min(max(int(text), least), most)
    except (TypeError, ValueError):
        return otherwise

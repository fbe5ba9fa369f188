"""Control paths of the fault server: `/_script` and `/_ledger`.

GET    /_script    the script as text
POST   /_script    another script, as text or as TOML
GET    /_ledger    everything that was asked, as JSON
DELETE /_ledger    begin another ledger

A script can make the agent under test run a shell command, so no web page may set one. Changes
need the header `CONTROL`, which a page of another origin cannot send without asking first; and
nothing that a browser sends on behalf of a page is answered here at all.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import MulliganError
from .file import read_toml
from .script import Script
from .wire import HttpRequest, whole

if TYPE_CHECKING:
    from .service import Service

__all__ = ("CONTROL", "control")

# Its value does not matter: a browser sends no header of this name across origins.
CONTROL = "x-mulligan-control"
_SENT_BY_PAGES = ("origin", "sec-fetch-site", "sec-fetch-mode")


def control(service: Service, request: HttpRequest, now: float) -> bytes | None:
    """The answer, or None if the path is not the server's own."""
    if not request.head.path.startswith("/_"):
        return None
    if refusal := _refusal(request):
        return _said(403, {"error": refusal}, now)
    if request.head.method != "HEAD":
        return _answered(service, request, now)
    get = replace(request, head=replace(request.head, method="GET"))
    return _answered(service, get, now).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _refusal(request: HttpRequest) -> str:
    """Why the request may not be answered; empty if it may."""
    headers = request.head.headers
    if any(name in headers for name in _SENT_BY_PAGES):
        return "the fault server's own paths are not for web pages"
    if request.head.method not in {"GET", "HEAD"} and CONTROL not in headers:
        return f"a change needs the header {CONTROL}, e.g. curl -H '{CONTROL}: 1' …"
    return ""


def _answered(service: Service, request: HttpRequest, now: float) -> bytes:
    match request.head.method, request.head.path:
        case "GET", "/_script":
            return _said(200, {"script": str(service.script)}, now)
        case "POST", "/_script":
            text = request.body.decode("utf-8", "replace")
            try:
                if "toml" in request.head.headers.get("content-type", ""):
                    service.change(read_toml(text, file="the script"))
                else:
                    service.set(Script.parse(text))
            except MulliganError as error:
                return _said(400, {"error": str(error)}, now)
            return _said(200, {"script": str(service.script)}, now)
        case "GET", "/_ledger":
            return _said(200, service.ledger.as_json(), now)
        case "DELETE", "/_ledger":
            service.clear(now)
            return _said(200, {"requests": 0}, now)
        case _:
            return _said(404, {"error": "known are /_script and /_ledger"}, now)


def _said(status: int, body: dict[str, object], now: float) -> bytes:
    return whole(status, {"content-type": "application/json"}, json.dumps(body).encode(), now)

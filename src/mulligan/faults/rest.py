"""A JSON resource whose writes are counted.

``POST /invoices`` creates one, and a client may create it twice by mistake, which the ledger shows.
A client that sends an ``Idempotency-Key`` gets the first answer again instead (and 422 for another
payload), as draft-ietf-httpapi-idempotency-key asks of a server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..errors import SettingError
from .limits import whole_seconds
from .vendors.base import Json, JsonResponse, RefusalReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .limits import LimitCheck

__all__ = ("Applied", "Resource", "Rest", "check_names")

_STATUSES = {"overloaded": 503, "plan": 429, "limit": 429, "billing": 402, "context": 413}
_STATUSES |= {"model": 404, "policy": 422, "auth": 401}
_PROBLEM = "application/problem+json"
# Only ASCII digits are a number here, and not too many of them.
_NUMBER = re.compile(r"[0-9]{1,12}")
# Default of ``is_retriable``, by status.
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a request to the resource."""

    answer: JsonResponse
    effect: str = ""  # what was changed, `POST /invoices/7`; empty if nothing was


class Resource:
    """Collections of JSON objects, in memory."""

    def __init__(
        self, names: tuple[str, ...] = ("invoices",), *, honours_keys: bool = True
    ) -> None:
        self._items: dict[str, dict[int, Json]] = {name: {} for name in check_names(names)}
        self._last = dict.fromkeys(names, 0)
        self._honours_keys = honours_keys
        self._kept: dict[tuple[str, str], tuple[str, JsonResponse]] = {}

    def change(self, names: tuple[str, ...] | None, *, honours_keys: bool | None) -> None:
        """Change the collections, or whether keys are honoured; None leaves a setting unchanged."""
        if names is not None:
            self._items = {name: self._items.get(name, {}) for name in check_names(names)}
            self._last = {name: self._last.get(name, 0) for name in names}
        if honours_keys is not None:
            self._honours_keys = honours_keys

    def covers(self, path: str) -> bool:
        return path.startswith("/") and path.split("/")[1] in self._items

    def apply(
        self, *, method: str, path: str, body: Json | None, client: str, key: str, hash_: str
    ) -> Applied:
        """Do what is asked; the same key gets the same answer without doing it again.

        A body of None is one that could not be read.
        """
        if body is None:
            return _problem(400, "the body is not a JSON object")
        if not key or not self._honours_keys or method in {"GET", "HEAD"}:
            return self._do(method, path, body)
        payload = f"{method} {path} {hash_}"
        if (client, key) in self._kept:
            first, answer = self._kept[client, key]
            if first != payload:
                return _problem(422, "this idempotency key was used with another payload")
            return Applied(replace(answer, headers={"idempotent-replayed": "true"}))
        done = self._do(method, path, body)
        self._kept[client, key] = (payload, done.answer)
        return done

    def _do(self, method: str, path: str, body: Json) -> Applied:
        name, _, tail = path.strip("/").partition("/")
        items = self._items[name]
        if not tail:
            return self._collection(method, name, items, body)
        number = int(tail) if _NUMBER.fullmatch(tail) else -1
        if number not in items:
            return _problem(404, f"no /{name}/{tail}")
        match method:
            case "GET" | "HEAD":
                return Applied(JsonResponse(body=items[number]))
            case "PUT" | "PATCH":
                wanted = {**(items[number] if method == "PATCH" else {}), **body, "id": number}
                effect = "" if wanted == items[number] else f"{method} {path}"
                items[number] = wanted
                return Applied(JsonResponse(body=wanted), effect)
            case "DELETE":
                return Applied(JsonResponse(body=items.pop(number)), f"DELETE {path}")
            case _:
                return _problem(405, f"{method} is not for one of {name}")

    def _collection(self, method: str, name: str, items: dict[int, Json], body: Json) -> Applied:
        if method in {"GET", "HEAD"}:
            return Applied(JsonResponse(body={name: list(items.values())}))
        if method != "POST":
            return _problem(405, f"{method} is not for all of {name}")
        number = self._last[name] = self._last[name] + 1
        items[number] = {**body, "id": number}
        where = {"location": f"/{name}/{number}"}
        answer = JsonResponse(status=201, body=items[number], headers=where)
        return Applied(answer, f"POST /{name}/{number}")


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, if each can stand in a path."""
    found = tuple(names)
    for name in found:
        if not name.isidentifier():
            raise SettingError(f"a resource is named like invoices; got {name!r}")
    return found


def _problem(status: int, detail: str) -> Applied:
    body = _body(status, detail, is_retriable=False)
    return Applied(JsonResponse(status=status, body=body, content_type=_PROBLEM))


def _body(status: int, detail: str, *, is_retriable: bool) -> Json:
    title = HTTPStatus(status).phrase if status in set(HTTPStatus) else f"Status {status}"
    about: Json = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return {**about, "is_retriable": is_retriable}


class Rest:
    """How the resource refuses: problem documents (RFC 9457), RateLimit headers (the draft's)."""

    name = "rest"

    def refusal(self, reason: RefusalReason) -> JsonResponse:
        status = reason.status or _STATUSES.get(reason.name, 500)
        detail = reason.message or f"refused: {reason.name}"
        said = reason.is_retriable
        body = _body(status, detail, is_retriable=status in _MAY_PASS if said is None else said)
        headers: dict[str, str] = {}
        if reason.admission is not None:
            kind = "https://iana.org/assignments/http-problem-types#quota-exceeded"
            body |= {"type": kind, "violated-policies": [reason.refused_by]}
        if reason.code is not None:
            body["code"] = reason.code
        if reason.wait is not None and reason.retry_after is None:
            headers = {"retry-after": str(whole_seconds(reason.wait))}
        return JsonResponse(status=status, body=body, headers=headers, content_type=_PROBLEM)

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        found = {"x-request-id": id_}
        if admission is None or "requests" not in admission.verdicts:
            return found
        limit, said = admission.verdicts["requests"]
        window, reset = max(1, round(limit.window)), whole_seconds(said.reset_at - now)
        return {
            **found,
            "ratelimit-policy": f'"requests";q={limit.capacity};w={window}',
            "ratelimit": f'"requests";r={said.remaining};t={reset}',
        }

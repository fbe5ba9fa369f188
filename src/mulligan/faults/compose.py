"""Composes the answer of a step in the format of the vendor.

Stateless: the answer follows from the step, the request and the time. `delivery` decides how its
bytes are sent.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from .delivery import PlannedResponse
from .fault_names import LIMIT
from .refusal_times import retry_after, stated_wait
from .toolcall import tool_call
from .vendors.base import (
    ClientRequest,
    RefusalReason,
    ResponseStream,
    Vendor,
    VendorReply,
    sse,
)

if TYPE_CHECKING:
    from .fault_names import Fault
    from .rest import Applied, Rest
    from .script import Turn

__all__ = ("applied", "good", "refusal", "refusal_reason", "restated", "stated")

_REFUSALS = frozenset(
    {LIMIT.name, "overloaded", "plan", "billing", "context", "model", "policy", "auth"}
)
_EMPTY = frozenset({204, 205})
_TOOLS = frozenset({"shell", "write", "call"})
_REST_ERROR = {"error": {"code": "overloaded", "message": "try again later"}}


def refusal_reason(turn: Turn, asked: ClientRequest, id_: str, now: float) -> RefusalReason:
    """Why the request is refused, if it is: everything a vendor needs to say so."""
    fault = turn.fault
    retriable = fault.text("retriable")
    return RefusalReason(
        name=fault.name,
        id=id_,
        now=now,
        asked=asked,
        status=fault.status,
        message=fault.text("message"),
        code=fault.text("code"),
        retry_after=fault.text("retry-after"),
        is_retriable=None if retriable is None else retriable == "yes",
        reset_at=turn.reset_at,
        lasts=turn.lasts,
        admission=turn.admission if fault == LIMIT else None,
        is_first=fault.name == "error-event" and fault.count("after") == 0,
    )


def refusal(
    api: Vendor | Rest, fault: Fault, reason: RefusalReason, headers: dict[str, str]
) -> PlannedResponse | None:
    """The refusal that the step asks for; None if it asks for a good answer."""
    if fault.name == "html":
        return _gateway(fault, headers, reason.now)
    if fault.status is None and fault.name not in _REFUSALS:
        return None
    if fault.status is not None and fault.status < 400:
        is_good = fault.status < 300
        ordered = {**headers, **_ordered(fault, reason.now)}
        return None if is_good else PlannedResponse(status=fault.status, headers=ordered)
    said = api.refusal(reason)
    if said.status == 200 and reason.asked.is_stream:  # Gemini blocks content so
        only = ResponseStream(frames=(sse(said.body),), middle=0)
        return PlannedResponse(status=200, headers=headers, stream=only)
    headers = {**headers, "content-type": said.content_type, **said.headers}
    headers |= _ordered(fault, reason.now)
    return PlannedResponse(status=said.status, headers=headers, body=_json(said.body))


def _ordered(fault: Fault, now: float) -> dict[str, str]:
    """The headers that the script names."""
    found = {}
    for name, value in fault.options:
        if name == "retry-after":
            found[name] = retry_after(value, now)
        elif name in {"retry-after-ms", "x-should-retry", "location"}:
            found[name] = value
        elif name.startswith("header."):
            found[name.removeprefix("header.").lower()] = value
    return found


def good(
    vendor: Vendor, fault: Fault, reason: RefusalReason, headers: dict[str, str], text: str
) -> PlannedResponse:
    """A vendor's good answer, whole or as events; some faults spoil it on the way."""
    asked = reason.asked
    call = tool_call(fault, asked) if fault.name in _TOOLS else None
    words = "" if fault.name == "empty" or call else fault.text("text") or text
    reply = VendorReply(id=reason.id, text=words, call=call, now=reason.now)
    if asked.is_stream:
        return PlannedResponse(
            status=200,
            headers=headers,
            stream=vendor.stream(asked, reply),
            error_event=vendor.error_event(reason),
        )
    return PlannedResponse(
        status=200,
        headers={**headers, "content-type": "application/json"},
        body=_json(vendor.page(asked, reply)),
        error_body=_json(vendor.refusal(replace(reason, name="overloaded")).body),
    )


def applied(done: Applied, fault: Fault, headers: dict[str, str]) -> PlannedResponse:
    """The resource's answer to a request that it has carried out."""
    said = done.answer
    return PlannedResponse(
        status=said.status,
        headers={**headers, **said.headers, "content-type": said.content_type},
        body=b"" if fault.name == "empty" else _json(said.body),
        error_body=_json(_REST_ERROR),
    )


def restated(answer: PlannedResponse, fault: Fault) -> PlannedResponse:
    """A good answer with the good status that the script names, without a body if it has none."""
    if fault.status is None or fault.status >= 300 or answer.status >= 300:
        return answer
    if fault.status not in _EMPTY:
        return replace(answer, status=fault.status)
    headers = {name: value for name, value in answer.headers.items() if name != "content-type"}
    return PlannedResponse(status=fault.status, headers=headers)


def stated(turn: Turn, answer: PlannedResponse, now: float) -> float | None:
    """Seconds that this answer tells the client to stay away; None if it tells nothing usable."""
    if turn.reset_at is not None:
        return turn.reset_at - now
    if turn.fault == LIMIT and turn.admission is not None:
        return turn.admission.retry_after
    return stated_wait(answer.headers, turn.fault.text("retry-after"), now)


def _gateway(fault: Fault, headers: dict[str, str], now: float) -> PlannedResponse:
    status = fault.count("status") or 502
    title = f"<head><title>{status}</title></head>"
    page = f"<html>\r\n{title}\r\n<body><h1>{status}</h1></body>\r\n</html>\r\n"
    headers = {**headers, "content-type": "text/html", **_ordered(fault, now)}
    return PlannedResponse(status=status, headers=headers, body=page.encode())


def _json(body: object) -> bytes:
    return json.dumps(body).encode()

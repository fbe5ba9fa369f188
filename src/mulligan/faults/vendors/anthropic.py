"""The Anthropic Messages API.

Errors carry their kind in ``error.type``. A plan's limit (a subscription) speaks through
``anthropic-ratelimit-unified-*`` headers with epoch seconds, an API key's limit through
``anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-*`` with RFC 3339 times.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING

from ..limits import whole_seconds
from .base import (
    ClientRequest,
    Json,
    JsonResponse,
    RefusalReason,
    ResponseStream,
    Tool,
    VendorReply,
    a_list,
    a_table,
    count_tokens,
    sse,
    status_words,
)

if TYPE_CHECKING:
    from ..limits import LimitCheck

__all__ = ("Anthropic",)

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_WORDS = {
    401: "invalid x-api-key",
    403: "Your API key does not have permission to use the specified resource",
    404: "Not found",
    413: "Request exceeds the maximum size",
    429: "Number of requests has exceeded your rate limit",
    500: "Internal server error",
    529: "Overloaded",
}
# Status and words of a fault that has a name.
_REFUSALS = {
    "overloaded": (529, _WORDS[529]),
    "plan": (429, "This request would exceed the limit of your plan"),
    "limit": (429, "This request would exceed your limit of {by} per window"),
    "billing": (400, "Your credit balance is too low to access the Anthropic API"),
    "context": (400, "prompt is too long: {over} tokens > 200000 maximum"),
    "model": (404, "model: {model}"),
    "policy": (400, "Output blocked by content filtering policy"),
    "auth": (401, _WORDS[401]),
}
# The window's length names the claim.
_CLAIMS = ((6 * 3600.0, "five_hour", "5h"), (float("inf"), "seven_day", "7d"))


class Anthropic:
    """Anthropic Messages: ``POST /v1/messages`` and ``/v1/messages/count_tokens``."""

    name = "anthropic"

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:  # noqa: ARG002 -- one signature for all vendors
        is_count = path.endswith("/messages/count_tokens")
        if method != "POST" or not (is_count or path.endswith("/messages")):
            return None
        tools = a_list(body.get("tools"))
        return ClientRequest(
            model=str(body.get("model", "")),
            is_stream=body.get("stream") is True,
            is_count=is_count,
            tools=tuple(
                Tool(name=str(each.get("name")), schema=a_table(each.get("input_schema")))
                for each in map(a_table, tools)
            ),
            tokens=count_tokens(json.dumps([body.get("system"), body.get("messages"), tools])),
        )

    def count(self, asked: ClientRequest) -> Json:
        return {"input_tokens": asked.tokens}

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        return {
            **self._opening(asked, reply),
            "content": self._content(reply),
            "stop_reason": "tool_use" if reply.call else "end_turn",
            "usage": _usage(asked.tokens, reply.tokens),
        }

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        delta = {"stop_reason": "tool_use" if reply.call else "end_turn", "stop_sequence": None}
        frames = (
            _event("message_start", message=self._opening(asked, reply)),
            *self._block(reply),
            _event("message_delta", delta=delta, usage={"output_tokens": reply.tokens}),
            _event("message_stop"),
        )
        middle = 3 + max(1, len(reply.pieces) // 2)
        return ResponseStream(frames=frames, middle=min(middle, len(frames) - 2))

    def refusal(self, reason: RefusalReason) -> JsonResponse:
        status, kind, message = _status_type_words(reason)
        body: Json = {
            "type": "error",
            "error": {"type": reason.code or kind, "message": reason.message or message},
            "request_id": f"req_{reason.id}",
        }
        headers: dict[str, str] = {}
        if reason.name == "plan" and reason.reset_at is not None:
            headers = _unified(reason.reset_at, reason.lasts)
        if reason.wait is not None and reason.retry_after is None:
            headers["retry-after"] = str(whole_seconds(reason.wait))
        return JsonResponse(status=status, body=body, headers=headers)

    def error_event(self, reason: RefusalReason) -> bytes:
        words = reason.message or "Overloaded"
        return _event("error", error={"type": "overloaded_error", "message": words})

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        found = {"request-id": f"req_{id_}"}
        for name, (limit, said) in (admission.verdicts if admission else {}).items():
            found |= _quota(name, limit.capacity, said.remaining, said.reset_at)
            if name == "tokens":
                # Tokens are counted when they are asked: all of them go in, none come out.
                found |= _quota("input-tokens", limit.capacity, said.remaining, said.reset_at)
                found |= _quota("output-tokens", limit.capacity, limit.capacity, now)
        return found

    def _opening(self, asked: ClientRequest, reply: VendorReply) -> Json:
        return {
            "id": f"msg_{reply.id}",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(asked.tokens, 1),
        }

    def _content(self, reply: VendorReply) -> list[Json]:
        if reply.call:
            tool: Json = {"type": "tool_use", "id": f"toolu_{reply.id}", "name": reply.call.name}
            return [{**tool, "input": reply.call.arguments}]
        return [{"type": "text", "text": reply.text}] if reply.text else []

    def _block(self, reply: VendorReply) -> list[bytes]:
        content = self._content(reply)
        if not content:
            return [_event("ping")]
        if reply.call:
            start: Json = {**content[0], "input": {}}
            deltas: list[Json] = [{"type": "input_json_delta", "partial_json": reply.call.written}]
        else:
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in reply.pieces]
        return [
            _event("content_block_start", index=0, content_block=start),
            _event("ping"),
            *(_event("content_block_delta", index=0, delta=delta) for delta in deltas),
            _event("content_block_stop", index=0),
        ]


def _event(kind: str, **data: object) -> bytes:
    return sse({"type": kind, **data}, event=kind)


def _usage(asked: int, answered: int) -> Json:
    return {
        "input_tokens": asked,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": answered,
        "service_tier": "standard",
    }


def _status_type_words(reason: RefusalReason) -> tuple[int, str, str]:
    if reason.name in _REFUSALS:
        status, words = _REFUSALS[reason.name]
        asked = reason.asked
        over = asked.tokens + 200_000
        words = words.format(by=reason.refused_by, over=over, model=asked.model)
    else:
        status = reason.status or 500
        words = status_words(_WORDS, status)
    default = "invalid_request_error" if status < 500 else "api_error"
    return status, _TYPES.get(status, default), words


def _quota(name: str, capacity: int, remaining: int, reset_at: float) -> dict[str, str]:
    stem = f"anthropic-ratelimit-{name}"
    # Whole seconds, and never one too early.
    at = datetime.fromtimestamp(ceil(reset_at - 1e-6), UTC)
    return {
        f"{stem}-limit": str(capacity),
        f"{stem}-remaining": str(remaining),
        f"{stem}-reset": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _unified(reset_at: float, lasts: float) -> dict[str, str]:
    claim, short = next((name, short) for most, name, short in _CLAIMS if lasts <= most)
    stem, reset = "anthropic-ratelimit-unified", str(int(reset_at))
    return {
        f"{stem}-status": "rejected",
        f"{stem}-reset": reset,
        f"{stem}-representative-claim": claim,
        f"{stem}-{short}-status": "rejected",
        f"{stem}-{short}-reset": reset,
        f"{stem}-{short}-utilization": "1.0",
        f"{stem}-overage-status": "rejected",
        f"{stem}-overage-disabled-reason": "org_level_disabled",
    }

"""The OpenAI Responses API.

Everything streams as numbered events, each with its type in the data as well; a failure inside a
stream is ``response.failed``, which the SDK hands on without raising anything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .base import (
    ClientRequest,
    Json,
    Refusal,
    RefusalReason,
    ResponseStream,
    Tool,
    VendorReply,
    a_list,
    a_table,
    count_tokens,
    sse,
)
from .openai_errors import openai_headers, openai_refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..limits import LimitCheck

__all__ = ("Responses",)


class Responses:
    """OpenAI Responses: ``POST /v1/responses`` and ``/v1/responses/input_tokens``."""

    name = "responses"

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:  # noqa: ARG002 -- one signature for all vendors
        is_count = path.endswith("/responses/input_tokens")
        if method != "POST" or not (is_count or path.endswith("/responses")):
            return None
        tools, items = body.get("tools"), body.get("input")
        # Codex sends its tools among the items for models that expect them there.
        more = [
            item.get("tools")
            for item in map(a_table, a_list(items))
            if item.get("type") == "additional_tools"
        ]
        return ClientRequest(
            model=str(body.get("model", "")),
            is_stream=body.get("stream") is True,
            is_count=is_count,
            tools=tuple(found for group in (tools, *more) for found in _tools(group)),
            tokens=count_tokens(json.dumps([body.get("instructions"), items, tools])),
        )

    def count(self, asked: ClientRequest) -> Json:
        return {"object": "response.input_tokens", "input_tokens": asked.tokens}

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        usage = {
            "input_tokens": asked.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked.tokens + reply.tokens,
        }
        output = [item] if (item := _item(reply, "completed")) else []
        return {**_opening(asked, reply), "status": "completed", "output": output, "usage": usage}

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        opening = _opening(asked, reply)
        events: list[Json] = [
            {"type": "response.created", "response": opening},
            {"type": "response.in_progress", "response": opening},
        ]
        item = _item(reply, "completed")
        if item is not None:
            body = _call_events(item) if reply.call else _text_events(reply, item)
            blank = _item(reply, "in_progress")
            events += [
                {"type": "response.output_item.added", "output_index": 0, "item": blank},
                *body,
                {"type": "response.output_item.done", "output_index": 0, "item": item},
            ]
        events.append({"type": "response.completed", "response": self.page(asked, reply)})
        frames = tuple(
            sse({**event, "sequence_number": number}, event=event["type"])
            for number, event in enumerate(events)
        )
        middle = 4 + max(1, len(reply.pieces) // 2)
        return ResponseStream(frames=frames, middle=min(middle, len(frames) - 1))

    def refusal(self, reason: RefusalReason) -> Refusal:
        return openai_refusal(reason)

    def error_event(self, reason: RefusalReason) -> bytes:
        words = reason.message or "The server is overloaded, try again later"
        response = {
            "id": f"resp_{reason.id}",
            "object": "response",
            "created_at": int(reason.now),
            "status": "failed",
            "model": reason.asked.model,
            "output": [],
            "error": {"code": "server_is_overloaded", "message": words},
        }
        event = {"type": "response.failed", "sequence_number": 99, "response": response}
        return sse(event, event="response.failed")

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        return openai_headers(id_, admission, now)


def _tools(group: object) -> Iterator[Tool]:
    for each in map(a_table, a_list(group)):
        kind = each.get("type")
        if kind == "namespace":
            yield from _tools(each.get("tools"))
        elif kind in ("function", "custom"):
            is_free = kind == "custom"
            schema = a_table(each.get("parameters"))
            yield Tool(name=str(each.get("name")), schema=schema, is_free=is_free)


def _opening(asked: ClientRequest, reply: VendorReply) -> Json:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": int(reply.now),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _item(reply: VendorReply, status: str) -> Json | None:
    is_done = status == "completed"
    if reply.call is not None and reply.call.text is not None:
        call = {"id": f"ctc_{reply.id}", "type": "custom_tool_call", "call_id": f"call_{reply.id}"}
        text = reply.call.text if is_done else ""
        return {**call, "name": reply.call.name, "input": text, "status": status}
    if reply.call is not None:
        call = {"id": f"fc_{reply.id}", "type": "function_call", "call_id": f"call_{reply.id}"}
        arguments = reply.call.written if is_done else ""
        return {**call, "name": reply.call.name, "arguments": arguments, "status": status}
    if not reply.text:
        return None
    content = [_part(reply.text)] if is_done else []
    message = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant"}
    return {**message, "status": status, "content": content}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _text_events(reply: VendorReply, item: Json) -> list[Json]:
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    return [
        {"type": "response.content_part.added", **place, "part": _part("")},
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in reply.pieces
        ),
        {"type": "response.output_text.done", **place, "text": reply.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": _part(reply.text)},
    ]


def _call_events(item: Json) -> list[Json]:
    place = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "custom_tool_call":
        stem = "response.custom_tool_call_input"
        return [
            {"type": f"{stem}.delta", **place, "delta": item["input"]},
            {"type": f"{stem}.done", **place, "input": item["input"]},
        ]
    stem = "response.function_call_arguments"
    return [
        {"type": f"{stem}.delta", **place, "delta": item["arguments"]},
        {"type": f"{stem}.done", **place, "name": item["name"], "arguments": item["arguments"]},
    ]

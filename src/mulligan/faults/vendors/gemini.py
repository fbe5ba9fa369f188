"""The Gemini generateContent API.

There are no quota headers and no ``Retry-After``: Gemini states the wait in the body as
``RetryInfo``, beside the quota that was violated. A stream has no last event either: the last chunk
is the one with a ``finishReason``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

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

__all__ = ("GeminiApi",)

_PATH = re.compile(r".*/models/(?P<model>[^/:]+):(?P<verb>[A-Za-z]+)")
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_WORDS = {
    401: "Request had invalid authentication credentials",
    403: "The caller does not have permission",
    404: "Requested entity was not found",
    429: "Resource has been exhausted (e.g. check quota)",
    500: "An internal error has occurred",
    503: "The model is overloaded",
    504: "The request timed out",
}
_RPC = "type.googleapis.com/google.rpc"
_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"


class GeminiApi:
    """Gemini: ``POST /v1beta/models/MODEL:generateContent`` and its siblings."""

    name = "gemini"

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:
        found = _PATH.fullmatch(path)
        verbs = {"generateContent", "streamGenerateContent", "countTokens"}
        if method != "POST" or found is None or found["verb"] not in verbs:
            return None
        tools = a_list(body.get("tools"))
        declared = [
            each
            for group in map(a_table, tools)
            for each in map(a_table, a_list(group.get("functionDeclarations")))
        ]
        instruction = body.get("systemInstruction")
        return ClientRequest(
            model=found["model"],
            is_stream=found["verb"] == "streamGenerateContent",
            is_count=found["verb"] == "countTokens",
            tools=tuple(
                Tool(
                    name=str(each.get("name")),
                    schema=a_table(each.get("parametersJsonSchema") or each.get("parameters")),
                )
                for each in declared
            ),
            tokens=count_tokens(json.dumps([instruction, body.get("contents"), tools])),
            wants_array="alt=sse" not in query,
        )

    def count(self, asked: ClientRequest) -> Json:
        return {"totalTokens": asked.tokens}

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        if reply.call:
            parts = [{"functionCall": {"name": reply.call.name, "args": reply.call.arguments}}]
        return _chunk(asked, reply, parts, is_last=True)

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        pieces = reply.pieces
        chunks = [_chunk(asked, reply, [{"text": piece}]) for piece in pieces[:-1]]
        last: list[Json] = [{"text": piece} for piece in pieces[-1:]]
        is_call = reply.call is not None
        chunks.append(
            self.page(asked, reply) if is_call else _chunk(asked, reply, last, is_last=True)
        )
        middle = min(max(1, len(pieces) // 2), len(chunks) - 1)
        if asked.wants_array:
            texts = [json.dumps(chunk) for chunk in chunks]
            opened = ["[" + texts[0], *("," + text for text in texts[1:])]
            frames = tuple(text.encode() for text in [*opened, "]"])
            return ResponseStream(frames=frames, middle=middle, content_type="application/json")
        return ResponseStream(frames=tuple(sse(chunk) for chunk in chunks), middle=middle)

    def refusal(self, reason: RefusalReason) -> JsonResponse:
        if reason.name == "policy":
            blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
            return JsonResponse(body={**blocked, "modelVersion": reason.asked.model})
        status, words, details = _status_words_details(reason)
        error = {
            "code": status,
            "message": reason.message or words,
            "status": reason.code or _STATUSES.get(status, "UNKNOWN"),
        }
        if reason.wait is not None:
            delay = f"{reason.wait:.9f}".rstrip("0").rstrip(".")
            details.append({"@type": f"{_RPC}.RetryInfo", "retryDelay": f"{delay}s"})
        body: Json = {"error": {**error, "details": details} if details else error}
        return JsonResponse(status=status, body=body)

    def error_event(self, reason: RefusalReason) -> bytes:
        words = reason.message or _WORDS[503]
        error: Json = {"error": {"code": 503, "message": words, "status": "UNAVAILABLE"}}
        if not reason.asked.wants_array:
            return sse(error)
        # In an array it is one more element, or the only one, and the array ends.
        return f"{'[' if reason.is_first else ','}{json.dumps(error)}]".encode()

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:  # noqa: ARG002 -- one signature for all vendors
        return {"x-gemini-service-tier": "standard", "server": "scaffolding on HTTPServer2"}


def _chunk(
    asked: ClientRequest, reply: VendorReply, parts: list[Json], *, is_last: bool = False
) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if not parts:
        candidate["content"] = {"role": "model"}
    if is_last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": asked.tokens,
            "candidatesTokenCount": reply.tokens,
            "totalTokenCount": asked.tokens + reply.tokens,
        },
        "modelVersion": asked.model,
        "responseId": reply.id,
    }


def _status_words_details(reason: RefusalReason) -> tuple[int, str, list[Json]]:  # noqa: PLR0911 -- one return per case
    model = reason.asked.model
    match reason.name:
        case "overloaded":
            return 503, "The model is overloaded. Please try again later.", []
        case "plan":
            words = f"You exceeded your current quota for {model}"
            return 429, words, [_violation("Day", model, 250)]
        case "limit":
            known = reason.admission.verdicts.values() if reason.admission else ()
            capacity = next((limit.capacity for limit, _ in known), 0)
            words = f"You exceeded your current quota for {model}"
            return 429, words, [_violation("Minute", model, capacity)]
        case "billing":
            said = f"Quota exceeded for metric: {_METRIC}, limit: 0"
            return 429, f"You exceeded your current quota. {said}", [_violation("Day", model, 0)]
        case "context":
            over = reason.asked.tokens + 1_048_576
            words = f"The input token count ({over}) exceeds the maximum number of tokens (1048576)"
            return 400, words, []
        case "model":
            return 404, f"models/{model} is not found for API version v1beta", []
        case "auth":
            info = {"@type": f"{_RPC}.ErrorInfo", "reason": "API_KEY_INVALID"}
            return 400, "API key not valid. Please pass a valid API key.", [info]
        case _:
            status = reason.status or 500
            return status, status_words(_WORDS, status), []


def _violation(span: str, model: str, value: int) -> Json:
    violation = {
        "quotaMetric": _METRIC,
        "quotaId": f"GenerateRequestsPer{span}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": str(value),
    }
    return {"@type": f"{_RPC}.QuotaFailure", "violations": [violation]}

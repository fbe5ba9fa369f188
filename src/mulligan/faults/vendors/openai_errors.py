"""Error bodies of OpenAI, for both of its APIs.

The error object is the same for Responses and Chat Completions. Quota headers state the reset as
a Go duration (``6m0s``, ``17ms``); the plan's limit of a subscription comes in the body, as
``resets_at`` in epoch seconds.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from ..limiter import whole_seconds
from .base import Json, Refusal, RefusalReason

if TYPE_CHECKING:
    from ..limits import LimitCheck

__all__ = ("go_duration", "openai_headers", "openai_refusal")

_TYPES = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("service_unavailable_error", "server_is_overloaded"),
}
_WORDS = {
    401: "Incorrect API key provided",
    403: "This request is not permitted for your organization",
    404: "The requested resource was not found",
    429: "Rate limit reached for requests",
    500: "The server had an error while processing your request",
    503: "The server is overloaded or not ready yet",
}


def openai_refusal(reason: RefusalReason) -> Refusal:
    """Status, headers, body."""
    status, kind, code, words = _spelled(reason)
    error: Json = {
        "message": reason.message or words,
        "type": kind,
        "param": "messages" if reason.name == "context" else None,
        "code": reason.code or code,
    }
    headers: list[tuple[str, str]] = []
    if reason.name == "plan" and reason.reset_at is not None:
        wait = max(0, ceil(reason.reset_at - reason.now))
        error |= {
            "plan_type": "plus",
            "resets_at": int(reason.reset_at),
            "resets_in_seconds": wait,
        }
        headers += [
            ("x-codex-primary-used-percent", "100"),
            ("x-codex-primary-window-minutes", str(max(1, round(reason.lasts / 60)))),
            ("x-codex-primary-reset-at", str(int(reason.reset_at))),
        ]
    elif reason.wait is not None and reason.retry_after is None:
        headers += [
            ("retry-after", str(whole_seconds(reason.wait))),
            ("retry-after-ms", str(max(1, ceil(reason.wait * 1000 - 1e-6)))),
        ]
    return Refusal(status=status, body={"error": error}, headers=tuple(headers))


def _spelled(reason: RefusalReason) -> tuple[int, str, str | None, str]:  # noqa: PLR0911 -- one return per case
    """Status, type, code, words."""
    model = reason.asked.model
    match reason.name:
        case "overloaded":
            return 503, *_TYPES[503], _WORDS[503]
        case "plan":
            return 429, "usage_limit_reached", None, "The usage limit has been reached"
        case "limit":
            by = reason.admission.refused_by if reason.admission else "requests"
            wait = (
                "" if reason.wait is None else f". Please try again in {go_duration(reason.wait)}"
            )
            if reason.wait is None:
                return 429, by, "rate_limit_exceeded", f"Request too large for {model} on {by}"
            return 429, by, "rate_limit_exceeded", f"Rate limit reached for {model} on {by}{wait}."
        case "billing":
            words = "You exceeded your current quota, check your plan and billing details"
            return 429, "insufficient_quota", "insufficient_quota", words
        case "context":
            words = "This model's maximum context length is 128000 tokens; your input is longer"
            return 400, "invalid_request_error", "context_length_exceeded", words
        case "model":
            words = f"The model `{model}` does not exist or you do not have access to it"
            return 404, "invalid_request_error", "model_not_found", words
        case "policy":
            words = "The request was rejected by the safety system"
            return 400, "invalid_request_error", "content_policy_violation", words
        case "auth":
            return 401, *_TYPES[401], _WORDS[401]
        case _:
            status = reason.status or 500
            default = ("invalid_request_error", None) if status < 500 else ("server_error", None)
            kind, code = _TYPES.get(status, default)
            return (
                status,
                kind,
                code,
                _WORDS.get(status, f"The request failed with status {status}"),
            )


def openai_headers(id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
    """The request id, and what is left of the limits."""
    found = {"x-request-id": f"req_{id_}", "openai-processing-ms": "12"}
    if admission is None:
        return found
    for name in ("requests", "tokens"):
        limit, said = getattr(admission.limits, name), getattr(admission, name)
        if limit is None or said is None:
            continue
        found |= {
            f"x-ratelimit-limit-{name}": str(limit.capacity),
            f"x-ratelimit-remaining-{name}": str(said.remaining),
            f"x-ratelimit-reset-{name}": go_duration(max(0.0, said.reset_at - now)),
        }
    return found


def go_duration(seconds: float) -> str:
    """`seconds` as Go prints a duration: ``17ms``, ``1.5s``, ``6m0s``, ``1h0m30s``."""
    # Up, never down: a client that comes back then must find it open.
    millis = ceil(seconds * 1000 - 1e-6)
    if millis < 1000:
        return f"{millis}ms"
    hours, minutes, rest = millis // 3_600_000, millis // 60_000 % 60, millis % 60_000 / 1000
    text = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text

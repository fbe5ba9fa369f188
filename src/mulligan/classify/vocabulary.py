"""Vendors' codes and phrases for failures, as tables.

A code is a word written for programs, so it counts wherever the status leaves room for it. A phrase
is part of a sentence written for people, so it counts only where no code was found. Phrases are
plain lower-case substrings, because every failure is searched for them.
"""

from __future__ import annotations

from functools import lru_cache

from ..core.failure import Kind

__all__ = (
    "CODES",
    "FROM_WORDS",
    "NEVER_PASSES",
    "OTHER_PAYLOAD",
    "PLAN",
    "SPENT",
    "UNDER_WAY_CODES",
    "VAGUE_CODES",
    "phrases_beside",
    "room_beside",
)

_CODES: dict[Kind, tuple[str, ...]] = {
    Kind.RATE_LIMIT: (
        *("rate_limit_error", "rate_limit_exceeded", "rate_limited", "ratelimited", "rate_limit"),
        *("too_many_requests", "toomanyrequests", "throttled", "throttling", "slow_down"),
        *("resource_exhausted", "ratelimitreached", "requestthrottled", "request_throttled"),
        # AWS
        *("throttlingexception", "throttledexception", "toomanyrequestsexception", "slowdown"),
        *("requestlimitexceeded", "provisionedthroughputexceededexception"),
        "requestthrottledexception",
        # The draft's problem types
        *("quota-exceeded", "abnormal-usage-detected"),
    ),
    Kind.QUOTA: (
        *("usage_limit_reached", "usage_limit_exceeded", "quota_exceeded", "daily_limit_exceeded"),
        *("user_weekly_rate_limited", "weekly_limit_reached", "monthly_limit_reached"),
        "dailylimitexceeded",
    ),
    Kind.BILLING: (
        *(
            "insufficient_quota",
            "insufficient_user_quota",
            "billing_hard_limit_reached",
            "billing_error",
            "billing_not_active",
        ),
        *("insufficient_balance", "insufficient_credits", "insufficient_funds", "arrearage"),
        *("credit_balance_too_low", "enforced_spend_limit_reached", "spend_limit_reached"),
        *("payment_required", "usage_not_included", "exceeded_current_quota_error"),
        *("servicequotaexceededexception", "billing_disabled"),
    ),
    Kind.OVERLOADED: (
        *("overloaded_error", "overloaded", "server_is_overloaded", "server_overloaded"),
        *("engine_overloaded", "engine_overloaded_error", "model_overloaded", "capacity_exceeded"),
        *("serviceunavailableexception", "modelnotreadyexception", "temporary-reduced-capacity"),
    ),
    Kind.AUTH: (
        *("authentication_error", "permission_error", "permission_denied", "invalid_api_key"),
        *("unauthenticated", "unauthorized", "api_key_invalid", "invalid_authentication"),
        *("account_deactivated", "token_expired", "invalid_token", "accessdenied"),
        *("accessdeniedexception", "unrecognizedclientexception", "expiredtoken"),
        *("expiredtokenexception", "invalidclienttokenid", "signaturedoesnotmatch"),
        *("invalidaccesskeyid", "invalidsignatureexception", "access_denied"),
    ),
    Kind.CONTEXT_LENGTH: (
        *("context_length_exceeded", "context_window_exceeded", "prompt_too_long"),
        *("model_context_window_exceeded", "string_above_max_length", "request_too_large"),
    ),
    Kind.CONTENT_POLICY: (
        *("content_policy_violation", "content_filter", "content_filtered", "content_policy"),
        *("responsibleaipolicyviolation", "moderation_blocked", "invalid_prompt", "safety"),
        *("prohibited_content", "data_inspection_failed", "bio_policy", "cyber_policy"),
    ),
}
CODES: dict[str, Kind] = {code: kind for kind, codes in _CODES.items() for code in codes}

# Codes that repeat what a status says, less exactly: they count where there is no status.
VAGUE_CODES: dict[str, Kind] = {
    **dict.fromkeys(
        ("api_error", "server_error", "internal_server_error", "internal_error", "internal"),
        Kind.SERVER,
    ),
    **dict.fromkeys(("internalserverexception", "modelstreamerrorexception"), Kind.SERVER),
    **dict.fromkeys(("unavailable", "service_unavailable"), Kind.OVERLOADED),
    **dict.fromkeys(
        ("timeout_error", "deadline_exceeded", "request_timeout", "modeltimeoutexception"),
        Kind.TIMEOUT,
    ),
    **dict.fromkeys(("aborted", "failed_precondition"), Kind.CONDITIONAL),
    **dict.fromkeys(
        ("invalid_request_error", "invalid_request", "invalid_argument", "not_found_error"),
        Kind.CLIENT,
    ),
    **dict.fromkeys(
        ("not_found", "model_not_found", "validationexception", "already_exists", "out_of_range"),
        Kind.CLIENT,
    ),
}

# An earlier attempt under the same key is being worked on: Stripe, PayPal, Adyen, the IETF's draft.
UNDER_WAY_CODES = frozenset(
    (
        *("idempotency_key_in_use", "idempotency_key_in_progress", "idempotency_in_progress"),
        *("idempotent_request_in_progress", "idempotency_request_in_progress"),
        *("idempotency_concurrent_request", "concurrent_idempotent_request"),
        *("request_in_progress", "previous_request_in_progress", "request_already_in_progress"),
        "requestinprogress",
    )
)
# The key is known from another request: a mistake, which no waiting mends (E-F3).
OTHER_PAYLOAD = (
    "different",
    "mismatch",
    "not match",
    "another payload",
    "other param",
    "not ident",
)

# However long one waits, these do not pass: the request itself is larger than the limit.
NEVER_PASSES = ("request too large", "tokens must be reduced", "message larger than max")

# A plan's window. OpenAI and Groq say "per day (TPD)" of a window that refills all the time.
PLAN = (
    *("usage limit", "daily limit", "daily quota", "weekly limit", "monthly limit", "perday"),
    *("per-day", "per day", "5 hour", "5-hour", "session limit", "regain access", "hour limit"),
    *("weekly/monthly", "quota will reset"),
)

# Money, not time, whatever the code beside it says.
SPENT = (
    *("spend limit", "spending limit", "credit balance", "insufficient credit"),
    *("insufficient balance", "insufficient funds", "billing hard limit", "out of credits"),
    *("余额不足", "欠费"),
)

_OVERLOAD = (
    *("overloaded", "capacity", "high demand", "server is busy", "too busy", "system busy"),
    *("heavy load", "high load", "peak load", "queue is full"),
)

_PHRASES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        Kind.CONTEXT_LENGTH,
        (
            *("context length", "context window", "context_length", "prompt is too long"),
            *("maximum context", "too many tokens", "input is too long", "input token count"),
            *("maximum number of tokens", "reduce the length"),
        ),
    ),
    (
        Kind.CONTENT_POLICY,
        (
            *("content policy", "content management policy", "content filter", "usage policy"),
            *("safety system", "flagged as"),
        ),
    ),
    (Kind.BILLING, (*SPENT, "plan and billing", "insufficient quota", "payment required")),
    (Kind.QUOTA, PLAN),
    (
        Kind.RATE_LIMIT,
        (
            *("rate limit", "rate-limit", "rate_limit", "ratelimit", "too many requests"),
            *("throttl", "quota exceeded", "current quota", "slow down", "abuse detection"),
        ),
    ),
    (Kind.OVERLOADED, _OVERLOAD),
    (
        Kind.AUTH,
        (
            *("api key not valid", "invalid api key", "incorrect api key", "invalid x-api-key"),
            *("bad credentials", "api key expired", "not authenticated"),
        ),
    ),
)

# What codes and words decide beside a status; of anything else the status knows more.
FROM_WORDS = frozenset((*_CODES, *(kind for kind, _ in _PHRASES)))
_ALL = frozenset(Kind)
_LIMITS = frozenset((Kind.RATE_LIMIT, Kind.QUOTA, Kind.BILLING))
_TOO_MUCH = frozenset((Kind.CONTEXT_LENGTH, Kind.CONTENT_POLICY))
_NONE: frozenset[Kind] = frozenset()
_ROOM: dict[int, frozenset[Kind]] = {
    400: _ALL,
    401: frozenset((Kind.BILLING,)),
    402: _LIMITS,
    403: _ALL,
    413: _TOO_MUCH,
    422: _TOO_MUCH,
    429: _LIMITS | _TOO_MUCH | {Kind.OVERLOADED},
    501: _NONE,
    505: _NONE,
}
_SERVER_ROOM = _TOO_MUCH | {Kind.OVERLOADED, Kind.RATE_LIMIT, Kind.QUOTA}


def room_beside(status: int | None) -> frozenset[Kind]:
    """The kinds that a code may still decide on, beside a status.

    A 404 is a 404 whatever its page says; a 400 may be a limit (E-G2); an error in a 200, or one
    without a status, may be anything.
    """
    if status is None:
        return _ALL
    room = _ROOM.get(status)
    if room is not None:
        return room
    return _SERVER_ROOM if status >= 500 else _NONE


@lru_cache(maxsize=256)
def phrases_beside(status: int | None) -> tuple[tuple[str, Kind], ...]:
    """The phrases that may decide beside a status, in order.

    Less room than for codes: a 429 is a limit even if it speaks of high demand, and the words of
    a 5xx are looked at for limits and load only.
    """
    room = room_beside(status)
    if status == 429:
        room -= {Kind.OVERLOADED}
    elif status is not None and status >= 500:
        room &= {Kind.OVERLOADED, Kind.RATE_LIMIT}
    return tuple((phrase, kind) for kind, phrases in _PHRASES if kind in room for phrase in phrases)

from __future__ import annotations

import json
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.http import classify_response
from mulligan.core.failure import Failure, Kind, Reach, Retryability
from mulligan.core.hint import Precision

NOW = 1_794_772_800.0  # 2026-11-15 20:00 UTC


def read(status: int | None, body: object = None, **headers: str) -> Failure:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    failure = classify_response(status, names, body, now=NOW)
    assert failure is not None
    return failure


def error(message: str = "", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, **fields}}


# --- the status alone: R-C5, R-C9, R-C10, E-G4


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.CLIENT),
        (401, Kind.AUTH),
        (402, Kind.BILLING),
        (403, Kind.AUTH),
        (404, Kind.CLIENT),
        (407, Kind.AUTH),
        (408, Kind.TIMEOUT),
        (409, Kind.CONDITIONAL),
        (410, Kind.CLIENT),
        (412, Kind.CONDITIONAL),
        (413, Kind.CLIENT),
        (418, Kind.CLIENT),
        (422, Kind.CLIENT),
        (423, Kind.CONDITIONAL),
        (425, Kind.CONDITIONAL),
        (429, Kind.RATE_LIMIT),
        (498, Kind.OVERLOADED),
        (500, Kind.SERVER),
        (501, Kind.SERVER),
        (502, Kind.SERVER),
        (503, Kind.SERVER),
        (504, Kind.SERVER),
        (505, Kind.SERVER),
        (520, Kind.SERVER),
        (529, Kind.OVERLOADED),
        (599, Kind.SERVER),
    ],
)
def test_a_bare_status_has_a_kind(status, kind):
    failure = read(status)
    assert failure.kind is kind
    assert failure.because == f"status {status}"
    assert failure.status == status


@pytest.mark.parametrize("status", [100, 200, 204, 301, 304, 399])
def test_what_is_no_error_is_no_failure(status):
    assert classify_response(status, {"retry-after": "5"}, {"ok": True}, now=NOW) is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_never_retriable_statuses_are_seen_as_such(status):  # R-C9, R-C10
    assert read(status).retryability is Retryability.NON_RETRYABLE


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529])
def test_server_statuses_are_retryable(status):  # R-C6
    assert read(status).retryability is Retryability.RETRYABLE


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 507, 524])
def test_a_crash_or_a_middleman_leaves_open_whether_it_was_applied(status):
    assert read(status).reach is Reach.MAYBE_APPLIED


@pytest.mark.parametrize("status", [400, 409, 429, 498, 501, 511, 529])
def test_the_server_refused_it(status):
    assert read(status).reach is Reach.ANSWERED


@pytest.mark.parametrize(
    ("status", "stated"), [(501, False), (505, False), (425, None), (500, None)]
)
def test_some_statuses_settle_it(status, stated):  # E-G4
    assert read(status).is_retriable is stated


# --- 429 is not one thing: E-G1


def test_insufficient_quota_without_a_reset_is_billing():
    failure = read(
        429, error("You ran out of money", type="insufficient_quota", code="insufficient_quota")
    )
    assert failure.kind is Kind.BILLING
    assert failure.code == "insufficient_quota"
    assert failure.because == "code insufficient_quota"


def test_insufficient_quota_with_a_reset_is_a_limit():  # Azure: the minute is full
    failure = read(
        429, error("Quota of this minute is used", code="insufficient_quota"), retry_after="9"
    )
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 9


def test_plenty_left_in_the_headers_is_no_reset():
    failure = read(
        429,
        error("You ran out of money", code="insufficient_quota"),
        x_ratelimit_remaining_requests="499",
        x_ratelimit_reset_requests="120ms",
    )
    assert failure.kind is Kind.BILLING


@pytest.mark.parametrize(
    "message",
    [
        "Request too large for our-model on tokens per min (TPM): Limit 30000, Requested 90000.",
        "Limit 7000, Used 0, Requested ~12903. Please try again in 50.5s.",
        "The input or output tokens must be reduced in order to run.",
    ],
)
def test_a_request_larger_than_the_limit_never_passes(message):
    failure = read(429, error(message, code="rate_limit_exceeded"), retry_after="5")
    assert (failure.kind, failure.is_retriable) == (Kind.CONTEXT_LENGTH, False)


def test_a_limit_of_zero_never_passes():  # Gemini names a wait beside it
    failure = read(
        429, error("Quota exceeded for metric: free_requests, limit: 0\nPlease retry in 25s.")
    )
    assert (failure.kind, failure.is_retriable) == (Kind.BILLING, False)
    assert read(429, error("Quota exceeded, limit: 20, model: m")).kind is Kind.RATE_LIMIT


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, error("slow down, please", type="rate_limit_error"), Kind.RATE_LIMIT),
        (429, error("Weekly limit reached for your plan"), Kind.QUOTA),
        (429, error("x", type="usage_limit_reached", resets_in_seconds=4000), Kind.QUOTA),
        (429, error("Rate limit exceeded: free-models-per-day"), Kind.QUOTA),
        (429, error("Usage limit reached for 5 hour"), Kind.QUOTA),
        (429, error("busy: we limit all callers (not your usage limit)"), Kind.RATE_LIMIT),
        (429, error("on tokens per day (TPD): Limit 9, Used 8, Requested 2"), Kind.RATE_LIMIT),
        (429, error("Spend limit reached", type="rate_limit_error"), Kind.BILLING),
        (429, error("x", details={"error_code": "enforced_spend_limit_reached"}), Kind.BILLING),
        (429, error("The system has high demand"), Kind.RATE_LIMIT),
        (429, error("x", type="engine_overloaded_error"), Kind.OVERLOADED),
        (400, error("API rate limit exceeded, calm down"), Kind.RATE_LIMIT),  # E-G2
        (403, {"message": "You have hit a secondary rate limit"}, Kind.RATE_LIMIT),  # E-G2
        (400, error("Your credit balance is too low", type="invalid_request_error"), Kind.BILLING),
        (
            400,
            error("prompt is too long: 214135 tokens", type="invalid_request_error"),
            Kind.CONTEXT_LENGTH,
        ),
        (400, error("x", code="context_length_exceeded"), Kind.CONTEXT_LENGTH),
        (413, error("x", type="request_too_large"), Kind.CONTEXT_LENGTH),
        (413, "<html><title>413 Entity Too Large</title></html>", Kind.CLIENT),
        (400, error("x", code="content_policy_violation"), Kind.CONTENT_POLICY),
        (400, error("This was flagged as potentially harmful"), Kind.CONTENT_POLICY),
        (400, error("x", innererror={}, code="content_filter"), Kind.CONTENT_POLICY),
        (400, error("API key not valid", status="INVALID_ARGUMENT", code=400), Kind.AUTH),
        (400, error("max_tokens: Field required", type="invalid_request_error"), Kind.CLIENT),
        (404, "page about the rate limit not found", Kind.CLIENT),
        (401, error("rate limit of wrong keys"), Kind.AUTH),
        (500, error("Overloaded", type="api_error"), Kind.OVERLOADED),
        (503, "no capacity left", Kind.OVERLOADED),
        (503, error("x", code=503, status="UNAVAILABLE"), Kind.OVERLOADED),
        (503, "<html><title>503 Service Unavailable</title></html>", Kind.SERVER),
        (503, {"__type": "com.amazon#SlowDown", "message": "x"}, Kind.RATE_LIMIT),
        (400, {"__type": "ThrottlingException", "message": "x"}, Kind.RATE_LIMIT),
        (403, {"__type": "AccessDeniedException", "message": "x"}, Kind.AUTH),
        (
            429,
            {"type": "https://iana.example/problem-types/quota-exceeded", "title": "x"},
            Kind.RATE_LIMIT,
        ),
        (503, {"type": "https://x.example/temporary-reduced-capacity"}, Kind.OVERLOADED),
        (402, error("x", code="quota_exceeded"), Kind.BILLING),
        (402, error("x", code="quota_exceeded", reset_at="2026-12-01T00:00:00Z"), Kind.QUOTA),
    ],
)
def test_codes_and_words_of_vendors_decide_where_the_status_leaves_room(status, body, kind):
    assert read(status, body).kind is kind
    assert read(status, json.dumps(body) if isinstance(body, dict) else body).kind is kind


def test_a_monthly_cap_in_a_400_is_a_quota_that_names_its_end():  # Anthropic
    failure = read(
        400,
        error(
            "Your API usage limits are reached. You will regain access on 2026-12-01 at 00:00 UTC.",
            type="invalid_request_error",
        ),
    )
    assert failure.kind is Kind.QUOTA
    assert failure.hint is not None
    assert failure.hint.at == 1_796_083_200
    assert failure.hint.precision is Precision.MINUTE


def test_the_clock_of_a_vendor_who_never_names_his_zone_is_known():  # z.ai: UTC+8
    words = "Usage limit reached for 5 hour. The limit will reset at 2026-11-16 05:00:00"
    failure = read(429, error(words, code="1308"))
    assert failure.kind is Kind.QUOTA
    assert failure.hint is not None
    assert failure.hint.delay == 3600
    assert read(429, error(words)).hint is None


def test_a_header_of_amazon_names_the_code():
    failure = read(400, {"message": "x"}, x_amzn_errortype="ThrottlingException:http://internal/")
    assert failure.kind is Kind.RATE_LIMIT


def test_a_plans_window_in_the_headers_makes_it_a_quota():
    unified = read(
        429,
        error("x", type="rate_limit_error"),
        anthropic_ratelimit_unified_status="rejected",
        anthropic_ratelimit_unified_reset=str(int(NOW) + 7200),
    )
    assert unified.kind is Kind.QUOTA
    daily = read(429, RateLimit='"day";r=0;t=4000', RateLimit_Policy='"day";q=50;w=86400')
    assert daily.kind is Kind.QUOTA
    minute = read(429, RateLimit='"min";r=0;t=40', RateLimit_Policy='"min";q=50;w=60')
    assert minute.kind is Kind.RATE_LIMIT


def test_a_daily_quota_of_gemini_is_a_quota():
    violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
    ]
    failure = read(429, error("quota", code=429, status="RESOURCE_EXHAUSTED", details=details))
    assert failure.kind is Kind.QUOTA
    assert failure.hint is not None
    assert (failure.hint.delay, failure.hint.source) == (34.5, "body retryDelay")


# --- where hints stand: R-L1, R-L11, E-A15, E-A16


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"retry_after": 7}, 7),
        ({"retry_after": "7.5"}, 7.5),
        ({"retry_after_ms": 1500}, 1.5),
        ({"retry_after_seconds": 12, "reset_at": "2027-01-01T00:00:00Z"}, 12),
        ({"reset_at": "2026-11-15T20:00:42Z"}, 42),
        ({"reset_at": NOW + 42}, 42),
        (error("x", resets_in_seconds=4000), 4000),
        (error("x", resets_at=int(NOW) + 4000), 4000),
        (error("x", details=[{"metadata": {"quotaResetDelay": "539.477544ms"}}]), 0.539477544),
        (error("x", metadata={"headers": {"X-RateLimit-Reset": str(int(NOW + 60) * 1000)}}), 60),
        (error("Please try again in 7m12s. Visit our page."), 432),
        (error("Please try again in 644ms."), 0.644),
        (error("Please try again in 1h 23m 4.5s."), 4984.5),
        (error("Please retry after 86400 seconds."), 86400),
        (error("Please retry in 34.074824224s."), 34.074824224),
        (error("Please wait 60 seconds before the next one"), 60),
        (error("try again in 5 days 27 minutes"), 5 * 86400 + 27 * 60),
        (error("It will reset in 2 hours and 5 minutes"), 7500),
        (error("Resets at 2026-11-15T20:05:00Z"), 300),
        # JSON inside a JSON text, as proxies make it
        (error(json.dumps(error("Please retry in 8s.", code=429))), 8),
    ],
)
def test_a_body_says_when(body, seconds):
    failure = read(429, body)
    assert failure.hint is not None
    assert failure.hint.delay == pytest.approx(seconds)


@pytest.mark.parametrize(
    "body",
    [
        {"retry_after": 0},
        {"retry_after": -5},
        {"retry_after": True},
        {"retry_after": None},
        {"retry_after": "1e3"},
        {"retry_after": [5]},
        {"retry_after": 10**400},
        '{"retry_after": NaN}',
        '{"retry_after": Infinity}',
        {"reset_at": "2020-01-01T00:00:00Z"},
        error("Please try again later"),
        error("Please try again in 0s"),
        error("Your limit will reset at 2026-11-15 21:00:00"),  # no zone: nobody knows
    ],
)
def test_a_body_without_a_future_gives_no_hint(body):
    assert read(429, body).hint is None


def test_retry_after_wins_over_everything_else():  # E-A15
    failure = read(
        429,
        {"retry_after": 50, "message": "try again in 70s"},
        retry_after="5",
        ratelimit='"default";r=0;t=30',
    )
    assert failure.hint is not None
    assert (failure.hint.delay, failure.hint.source) == (5, "retry-after")


def test_github_waits_a_minute_at_least_where_it_names_no_time():
    words = {"message": "You have exceeded a secondary rate limit."}
    bare = read(403, words)
    assert bare.kind is Kind.RATE_LIMIT
    assert bare.hint is not None
    assert bare.hint.delay == 60
    left = read(403, words, x_ratelimit_remaining="14", x_ratelimit_reset=str(int(NOW) + 5))
    assert left.hint is not None
    assert left.hint.delay == 60
    told = read(403, words, retry_after="17")
    assert told.hint is not None
    assert told.hint.delay == 17


def test_github_rejects_with_403_and_an_epoch():
    failure = read(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 31))
    assert failure.kind is Kind.RATE_LIMIT
    assert failure.hint is not None
    assert failure.hint.delay == 31


@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, Kind.OVERLOADED), (402, Kind.QUOTA), (403, Kind.RATE_LIMIT), (413, Kind.CONDITIONAL)],
)
def test_a_reset_changes_what_a_status_means(status, kind):
    assert read(status, retry_after="30").kind is kind


def test_a_reset_beside_a_fault_counts_only_if_the_limit_is_used_up():
    reset = str(int(NOW) + 3000)
    assert read(500, x_ratelimit_reset=reset).hint is None
    assert read(403, x_ratelimit_reset=reset).kind is Kind.AUTH
    assert read(429, x_ratelimit_reset=reset).hint is not None
    assert read(500, x_ratelimit_reset=reset, x_ratelimit_remaining="0").hint is not None


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_reset_does_not_change_the_callers_own_mistakes(status):
    assert read(status, retry_after="30").retryability is Retryability.NON_RETRYABLE


# --- explicit statements: E-G7, R-C11


@pytest.mark.parametrize("stated", ["true", "false", " True "])
def test_x_should_retry_wins(stated):
    failure = read(400 if "t" in stated.lower() else 503, x_should_retry=stated)
    assert failure.is_retriable is (stated.strip().lower() == "true")
    assert failure.because == f"header says x-should-retry={stated.strip().lower()}"


def test_is_retriable_wins_both_ways():
    wrong = {"type": "about:blank", "title": "Bad", "is_retriable": True}
    assert read(422, wrong).retryability is Retryability.RETRYABLE
    gone = read(503, {"detail": "gone for good", "is_retriable": False})
    assert gone.retryability is Retryability.NON_RETRYABLE
    assert gone.because == "body says is_retriable=false"


@pytest.mark.parametrize("stated", ["true", 1, 0, "false", None, [True]])
def test_only_a_boolean_is_a_statement(stated):
    assert read(503, {"detail": "x", "is_retriable": stated}).is_retriable is None


@pytest.mark.parametrize(
    ("value", "stated", "seconds"),
    [("1500", True, 1.5), ("0", True, None), ("-1", False, None), ("soon", False, None)],
)
def test_grpc_push_back_is_a_statement(value, stated, seconds):
    failure = read(503, grpc_retry_pushback_ms=value)
    assert failure.is_retriable is stated
    assert (failure.hint.delay if failure.hint else None) == seconds


def test_of_two_statements_the_no_is_believed():
    assert read(503, {"is_retriable": True}, x_should_retry="false").is_retriable is False
    assert read(503, {"is_retriable": False}, x_should_retry="true").is_retriable is False


def test_retry_info_says_that_a_conflict_may_be_repeated():
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}
    assert read(409, error("x", status="ABORTED", details=[info])).is_retriable is True


# --- a 200 that is none: DESIGN "Failure kinds"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, Kind.OVERLOADED),
        (error("Provider returned error", code=502), Kind.SERVER),
        (error("x", code=429), Kind.RATE_LIMIT),
        ({"data": None, "errors": [{"type": "RATE_LIMITED", "message": "x"}]}, Kind.RATE_LIMIT),
        ({"ok": False, "error": "ratelimited"}, Kind.RATE_LIMIT),
        (error("nobody has seen this before"), Kind.UNKNOWN),
        ([error("x", code=503, status="UNAVAILABLE")], Kind.OVERLOADED),
        (
            'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
            Kind.OVERLOADED,
        ),
    ],
)
def test_an_error_inside_a_200_is_a_failure(body, kind):
    failure = read(200, body)
    assert failure.kind is kind
    assert failure.status == 200
    assert failure.because.endswith("in an answer with status 200")


@pytest.mark.parametrize(
    "body",
    [
        {"error": None, "id": 1},
        {"error": {}, "id": 1},
        {"error": "", "id": 1},
        {"data": {"a": 1}, "errors": [{"message": "part of it"}]},
        {"choices": [{"message": {"content": "rate limit exceeded: error 429"}}]},
        {"errors": []},
        "rate limit exceeded",
        b"\x00\xff",
        [],
        None,
    ],
)
def test_an_answer_that_speaks_of_errors_is_an_answer(body):
    assert classify_response(200, {}, body, now=NOW) is None


# --- what is handed on


def test_401_hands_back_the_original_message():  # R-C12
    assert (
        read(401, error("Key of project blue has expired")).message
        == "Key of project blue has expired"
    )


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (
            {"title": "x", "errors": [{"detail": "must be positive", "pointer": "#/user/age"}]},
            (("user.age", "must be positive"),),
        ),
        (
            {
                "detail": [
                    {"loc": ["body", "user", 0, "age"], "msg": "Field required", "type": "missing"}
                ]
            },
            (("user.0.age", "Field required"),),
        ),
        ({"errors": {"email": ["is taken", "is ugly"]}}, (("email", "is taken; is ugly"),)),
        (
            {
                "message": "x",
                "errors": [{"resource": "Issue", "field": "title", "code": "missing"}],
            },
            (("title", "missing"),),
        ),
        ({"invalid-params": [{"name": "age", "reason": "too old"}]}, (("age", "too old"),)),
        (error("too hot", param="temperature"), (("temperature", "too hot"),)),
        (
            error("x", details=[{"fieldViolations": [{"field": "a.b", "description": "no"}]}]),
            (("a.b", "no"),),
        ),
    ],
)
def test_422_hands_back_the_failing_fields(body, fields):  # R-C12
    assert read(422, body).fields == fields


def test_messages_are_masked_and_cut():
    failure = read(500, error("token=abcdefghijkl123456 " + "x" * 900))
    assert "abcdefghijkl" not in failure.message
    assert len(failure.message) <= 500


def test_the_callers_own_codes_win_but_not_over_a_statement():  # R-C16, R-C17
    codes = {"order_locked": Kind.CONDITIONAL}
    body = error("x", code="ORDER_LOCKED")
    failure = classify_response(422, {}, body, now=NOW, codes=codes)
    assert failure is not None
    assert (failure.kind, failure.because) == (Kind.CONDITIONAL, "code order_locked")
    stopped = classify_response(422, {"x-should-retry": "false"}, body, now=NOW, codes=codes)
    assert stopped is not None
    assert stopped.retryability is Retryability.NON_RETRYABLE


# --- nothing makes it raise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "error",
                        "errors",
                        "type",
                        "code",
                        "message",
                        "details",
                        "status",
                        "retry_after",
                    ),
                    *(
                        "reset_at",
                        "retryDelay",
                        "is_retriable",
                        "metadata",
                        "violations",
                        "loc",
                        "detail",
                    ),
                ]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        *(
            "retry-after",
            "Retry-After-Ms",
            "x-should-retry",
            "RateLimit",
            "RateLimit-Policy",
            "Date",
        ),
        *("x-ratelimit-reset", "grpc-retry-pushback-ms", "x-amzn-errortype", "age"),
    ]
)
HEADERS = st.one_of(
    st.none(),
    st.dictionaries(NAMES | st.text(max_size=9), st.text(max_size=30) | st.binary(max_size=30)),
    st.lists(st.tuples(NAMES, st.text(max_size=30) | st.integers() | st.none())),
    st.lists(st.integers()),
)


@given(
    status=st.none() | st.integers(-5, 700),
    headers=HEADERS,
    body=JSON | st.binary(max_size=60) | st.text(max_size=60) | JSON.map(json.dumps),
    now=st.floats(),
)
def test_no_answer_makes_it_raise(status, headers, body, now):
    failure = classify_response(status, headers, body, now=now)
    if failure is not None:
        assert failure.because
        assert len(failure.message) <= 500
        assert failure.hint is None or (isfinite(failure.hint.delay) and failure.hint.delay > 0)
    else:
        assert status is not None
        assert status < 400


def test_a_body_of_endless_depth_is_just_a_body():
    assert read(500, "[" * 100_000).kind is Kind.SERVER
    deep: object = "x"
    for _ in range(5000):
        deep = {"error": deep, "details": [deep]}
    assert read(500, deep).kind is Kind.SERVER


def test_a_megabyte_is_not_searched_to_its_end():
    assert read(500, b"x" * 2_000_000).kind is Kind.SERVER


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}},
        {"message": "A previous request on this resource is currently in progress."},
        {"title": "A request is outstanding for this Idempotency-Key"},
        {"message": "A request with the same Idempotency-Key is being processed."},
        {"message": "There is currently another in-progress request using this Idempotent Key"},
        {"message": "Idempotent request already in progress"},
        {"message": "request already in progress"},
        {"message": "Another request for this order is in progress, try again"},
    ],
)
def test_a_request_that_is_under_way_passes_and_may_have_been_applied(body):  # E-F2
    found = read(409, body)
    assert (found.kind, found.is_retriable) == (Kind.CONDITIONAL, True)
    assert found.reach is Reach.MAYBE_APPLIED
    assert read(400, body).is_retriable is None


@pytest.mark.parametrize(
    "words",
    [
        "version conflict",
        "this order is in progress and cannot be cancelled",
        "This idempotency key is already in use with different parameters",
        "Idempotency-Key mismatch: the earlier request was in progress with another payload",
    ],
)
def test_another_conflict_is_no_request_under_way(words):  # E-F3
    found = read(409, {"message": words})
    assert (found.kind, found.is_retriable) == (Kind.CONDITIONAL, None)
    assert found.reach is Reach.ANSWERED

"""The same evidence means the same in an HTTP answer and in what a program printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.http import classify_response, judge_words
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
PHRASES = {each.value: each.phrase for each in HTTPStatus}


def facts(failure):
    assert failure is not None
    return failure.kind, failure.status, failure.reach, failure.is_retriable


def printed(text):
    return read_output(text, packs=PACKS, now=NOW, zone=UTC, exit_code=1).failure


@pytest.mark.parametrize("status", range(400, 600))
def test_a_status_means_the_same_in_an_answer_in_a_line_and_in_a_body(status):
    answered = facts(classify_response(status, now=NOW))
    assert facts(printed(f"API Error: {status}")) == answered
    assert facts(printed(json.dumps({"error": {"code": status, "message": "no"}}))) == answered


@pytest.mark.parametrize("status", [each for each in PHRASES if each >= 400])
def test_a_status_with_its_usual_phrase_means_the_same_in_a_line(status):
    phrase = PHRASES[status]
    assert facts(printed(f"API Error: {status} {phrase}")) == facts(
        judge_words(status, phrase, now=NOW)
    )


@pytest.mark.parametrize(("status", "kind"), [(403, "auth"), (413, "client"), (503, "overloaded")])
def test_a_sentence_about_waiting_counts_for_the_same_statuses(status, kind):
    words = "not now, retry after 30 seconds"
    said = printed(f"API Error: {status} {words}")
    assert facts(said) == facts(judge_words(status, words, now=NOW))
    assert said.kind == kind


def when(failure):
    assert failure is not None
    hint = failure.hint
    return None if hint is None else (hint.delay, hint.precision, hint.confidence)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("try again in 20s", 20),
        ("try again in 1.5s", 1.5),
        ("try again in 6m0s", 360),
        ("try again in 250ms", 0.25),
        ("retry after 3,600 seconds", 3600),
        ("wait 1,234,567 ms", 1234.567),
        ("retry in 1.200 seconds", 1.2),
        ("try again in 2 weeks", 14 * 86400),
        ("try again in 2 days, 3 hours and 5 minutes", 2 * 86400 + 3 * 3600 + 300),
        ("try again in less than a minute", 60),
        ("resets 9pm (Europe/Berlin)", 7 * 3600),
        ("resets at 2:30 pm UTC", 9000),
        ("resets on Jul 8, 2026 at 12:00 UTC", 2 * 86400),
        ("try again at 2026-07-06 13:00:00 UTC", 3600),
        ("available again in 5 minutes", 300),
        ("it resets at 1783346400", 7200),
        ("bitte in 30 Sekunden erneut versuchen", 30),
        ("please slow down", None),
    ],
)
def test_words_state_the_same_time_in_an_answer_and_in_a_line(words, seconds):
    body = {"error": {"message": f"Rate limit reached; {words}."}}
    answered = when(classify_response(429, {}, body, now=NOW))
    assert when(printed(f"API Error: 429 Rate limit reached; {words}.")) == answered
    assert (None if answered is None else answered[0]) == seconds


def test_a_time_without_a_zone_is_the_hosts_where_the_program_runs_on_the_host():
    words = "Rate limit reached; resets at 9pm"
    assert when(printed(f"API Error: 429 {words}"))[0] == 9 * 3600
    assert when(classify_response(429, {}, {"error": {"message": words}}, now=NOW)) is None


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"retry_after": 30}, 30),
        ({"retryAfter": "30"}, 30),
        ({"retry_after_ms": 1500}, 1.5),
        ({"retryAfterMs": "1500"}, 1.5),
        ({"retry_delay": "34.07s"}, 34.07),
        ({"retryDelay": "1h47m17.664s"}, 6437.664),
        ({"retry_after": "2 hours"}, 7200),
        ({"retry_after": 1783346400}, 7200),
        ({"resets_in_seconds": 90}, 90),
        ({"cooldown_seconds": 90}, 90),
        ({"resets_at": 1783346400}, 7200),
        ({"resetsAt": 1783346400000}, 7200),
        ({"resetsAt": 1783346400000000}, 7200),
        ({"resetsAt": 1783346400000000000}, 7200),
        ({"resetsAt": 1783346400 * 10**12}, None),
        ({"resetsAt": "9999-12-31T23:59:59Z"}, None),
        ({"retry_after": 99999999999999}, None),
        ({"retry_after": "99999999999999 seconds"}, None),
        ({"retry_after_ms": 1e18}, None),
        ({"reset_at": "2026-07-06T14:00:00Z"}, 7200),
        ({"reset_at": "2026-07-06T14:00:00"}, 7200),
        ({"nextResetTime": "2026-07-06 16:00:00 +0200"}, 7200),
        ({"reset_time": "Mon, 06 Jul 2026 14:00:00 GMT"}, 7200),
        ({"reset_at": "9pm (Europe/Berlin)"}, 25200),
        ({"resetsAt": 1783330000}, None),
        ({"metadata": {"headers": {"Retry-After": "30"}}}, 30),
        (
            {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90"}}},
            90,
        ),
        ({"retry_after": True}, None),
        ({"retry_after": -5}, None),
        ({"retry_after": "soon"}, None),
    ],
)
def test_a_field_states_the_same_time_in_an_answer_and_in_a_printed_body(fields, seconds):
    body = {"error": {"message": "Rate limit reached", "code": 429, **fields}}
    answered = when(classify_response(429, {}, body, now=NOW))
    assert when(printed(json.dumps(body))) == answered
    assert (None if answered is None else answered[0]) == seconds


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "30"},
        {"retry-after-ms": "1500"},
        {"retry-after": "Mon, 06 Jul 2026 14:00:00 GMT"},
        {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"},
        {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": "1783346400",
        },
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1783346400"},
    ],
)
def test_headers_state_the_same_time_in_an_answer_and_in_printed_lines(headers):
    shown = "\n".join(f"{name}: {value}" for name, value in headers.items())
    said = printed(f"HTTP/1.1 429 Too Many Requests\n{shown}\n")
    answered = when(classify_response(429, headers, now=NOW))
    assert answered is not None
    assert when(said) == answered


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        pytest.param(body, kind, status, code, id=name)
        for name, kind, status, code, body in [
            (
                "anthropic", "overloaded", None, "overloaded_error",
                {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            ),
            (
                "anthropic too large", "context_length", None, "request_too_large",
                {"type": "error", "error": {"type": "request_too_large", "message": "too big"}},
            ),
            (
                "openai", "rate_limit", None, "rate_limit_exceeded",
                {"error": {"message": "no", "type": "requests", "code": "rate_limit_exceeded"}},
            ),
            (
                "openai money", "billing", None, "insufficient_quota",
                {"error": {"message": "no", "type": "other", "code": "insufficient_quota"}},
            ),
            (
                "google", "rate_limit", 429, "RATE_LIMIT_EXCEEDED",
                {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED",
                           "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
                                        "reason": "RATE_LIMIT_EXCEEDED"}]}},
            ),
            (
                "google in a list", "auth", 403, "PERMISSION_DENIED",
                [{"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}],
            ),
            (
                "aws", "rate_limit", None, "ThrottlingException",
                {"__type": "com.amazon#ThrottlingException", "message": "no"},
            ),
            (
                "aws upper case", "rate_limit", None, "ThrottlingException",
                {"Error": {"Code": "ThrottlingException", "Message": "no"}},
            ),
            (
                "openrouter", "rate_limit", 429, "rate_limit_exceeded",
                {"error": {"code": 429, "message": "Provider returned error", "metadata": {
                    "raw": '{"error": {"message": "no", "code": "rate_limit_exceeded"}}'}}},
            ),
            (
                "problem", "server", 503, "maintenance",
                {"type": "https://acme.example/problems/maintenance", "title": "No", "status": 503},
            ),
            (
                "a body quoted in a message", "overloaded", 529, "overloaded_error",
                {"error": {"code": 529, "message": '{"error": {"type": "overloaded_error"}}'}},
            ),
            (
                "status as text", "auth", 401, None,
                {"message": "no", "statusCode": "401"},
            ),
            (
                "the outer status", "server", 502, None,
                {"error": {"code": 502, "message": "no", "metadata": {"code": 400}}},
            ),
            (
                "http status code", "server", 500, "InternalServerException",
                {"name": "InternalServerException", "message": "no",
                 "$metadata": {"httpStatusCode": 500}},
            ),
            (
                "error code", "rate_limit", None, "rate_limit_exceeded",
                {"errorCode": "rate_limit_exceeded", "errorMessage": "no"},
            ),
            (
                "gemini blocked", "content_policy", None, "SAFETY",
                {"promptFeedback": {"blockReason": "SAFETY"}},
            ),
        ]
    ],
)  # fmt: skip
def test_a_body_says_the_same_in_an_answer_and_where_it_is_printed(body, kind, status, code):
    answered = classify_response(None, {}, body, now=NOW)
    said = printed(json.dumps(body))
    assert answered is not None
    assert (answered.kind, answered.status, answered.code) == (kind, status, code)
    assert said is not None
    assert (said.kind, said.status, said.code) == (kind, status, code)
    assert said.reach is answered.reach

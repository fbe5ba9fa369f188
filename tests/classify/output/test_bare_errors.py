"""Errors in other words: behind unusual introductions, or behind none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output.last_error import bare_error
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs


def read(text, *, agent="", exit_code=None):
    found = read_output(text, packs=PACKS, now=NOW, zone=UTC, agent=agent, exit_code=exit_code)
    kind = None if found.failure is None else str(found.failure.kind)
    return kind, None if found.reset is None else round(found.reset.seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the proxy returned status 429 (Too Many Requests)", ("rate_limit", None)),
        ("step 4 ended with code=rate_limit_exceeded", ("rate_limit", None)),
        ("Stream error after three tries: rate limited, wait ~40s", ("rate_limit", 40)),
        ("[error] Model call gave up: rate limit hit, retry after 9s", ("rate_limit", 9)),
        ("bridge[job-7]: Error during chat: too many requests", ("rate_limit", None)),
        ("Agent stopped: usage limit reached, resets in 2h", ("quota", 7200)),
        ("12:00:01 - acme:ERROR: loop.py:88 - [main] 429 slow down", ("rate_limit", None)),
        ("It broke:\n   0: unhandled error (ThrottlingException)", ("rate_limit", None)),
        ("Acme quota reached:\n   all calls are used, come back in 3 hours", ("quota", 10800)),
        ("Sorry, I can't do it. You've reached your chat limit. It resets in 5m.", ("quota", 300)),
        ("All 4 keys of provider 'acme' are rate-limited", ("rate_limit", None)),
        ("You've used all of your prompts for today", ("quota", None)),
        ("No prompts left in this window. The window resets in 20m.", ("quota", 1200)),
        ("You are sending prompts too quickly. Please wait 15 seconds.", ("rate_limit", 15)),
        ("RateLimitError: slow down, retry after 00:01:30", ("rate_limit", 90)),
        ("您的限额已用完 3 小时的上限。限额将在 2026-07-06 22:00:00 重置", ("quota", 36000)),
        ("429 - {'error': {'message': 'busy, try a\ngain in 7 seconds'}}", ("rate_limit", 7)),
        ("{'error': 'Too Many Requests', 'code': 429}", ("rate_limit", None)),
    ],
)  # fmt: skip
def test_a_limit_is_heard_in_other_words(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I made the client wait when the API returned 429.",
        "SELECT id FROM calls WHERE status = 429 AND code LIKE '%rate_limit%'",
        'const CODE = "rate_limit_exceeded";',
        "ApiError::RateLimited { wait } => {",
        "- [P2] 529 overloaded_error counts as a quota",
        "Failed tests: test_rate_limit, test_quota_exceeded",
        "Error handling: the client backs off when rate limited",
        "Rate Limits (from the headers)\n  requests 4987 / 5000 (resets in 12s)",
        'Last week: Hit the limit with the words "weekly limit reached, resets Oct 24"',
        "My session reached 100% usage and the page said that it\nwould reset at 11:00 AM",
    ],
)
def test_talk_and_code_stay_harmless(text):
    assert read(text)[0] is None


def test_an_error_above_which_a_stack_trace_shows_code_is_not_its_rest():
    trace = (
        '  File "/srv/acme/clients/some_rather_long_module_name.py", line 9, in call\n'
        "    raise self._an_error_made_from_the(answer.of_the_server) from None\n"
        "acme.RateLimitError: slow down"
    )
    assert read(trace) == ("rate_limit", None)


def test_an_error_that_begins_in_lower_case_is_not_the_rest_of_the_line_above():
    above = "WARN llm: this status can be tried again, attempt=1 of 3 status=429 Too Many Requests"
    body = '{"error": {"code": "busy", "message": "rate limit exceeded, retry after 2s"}}'
    assert read(f"{above}\nerror=the model gave up: 429 Too Many Requests:\n{body}") == (
        "rate_limit",
        2,
    )


def test_tasks_below_a_banner_do_not_make_it_an_answer():
    banner = "You've hit your session limit · resets 3pm (UTC)"
    tasks = "  ◻ Write the parser of the new format first\n  ✔ Read the whole of the old one"
    assert read(f"{banner}\n\n  2 tasks (1 done, 1 open)\n{tasks}") == ("quota", 10800)


def test_a_program_that_is_called_generic_does_not_change_the_order_of_the_packs():
    assert read("API Error: 429 quota_exhausted, resource_exhausted", agent="generic")[0] == "quota"


def test_an_essay_is_not_terse():
    assert bare_error("status 429 " + "and so on " * 100) == (False, None)

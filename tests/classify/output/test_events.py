"""Shapes in which programs print what they say: whose words they are, where they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
HOUR = 3600.0


def read(text, **kwargs):
    """Kind and seconds to the reset."""
    found = read_output(text, packs=PACKS, now=NOW, zone=ZoneInfo("Europe/Berlin"), **kwargs)
    kind = None if found.failure is None else str(found.failure.kind)
    return kind, None if found.reset is None else found.reset.seconds


def test_the_second_corner_under_a_tool_is_the_programs_own_word():
    text = "● Bash(make test)\n  ⎿  31 passed\n  ⎿  5-hour limit reached ∙ resets 9pm\n\n❯ "
    assert read(text, agent="claude") == ("quota", 7 * HOUR)


def test_a_corner_inside_a_tools_answer_is_the_tools():
    text = "● Bash(tmux capture-pane)\n  ⎿  ❯ go on\n       ⎿  You've hit your limit · resets 9pm"
    assert read(text, agent="claude") == (None, None)


@pytest.mark.parametrize("key", ["result", "message", "error"])
def test_of_several_banners_in_one_string_the_last_counts(key):
    said = "You've hit your limit · resets 3pm\n\n❯ go on\nYou've hit your limit · resets 9pm"
    event = {"type": "result", "is_error": True} if key == "result" else {"status": "error"}
    assert read(json.dumps({**event, key: said})) == ("quota", 7 * HOUR)


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("task 7 failed (quota): resets in 2h 15m", "quota", 8100),
        ("agent two failed (usage limit): resets at 17:00 UTC", "quota", 5 * HOUR),
        ("- error Error [AcmeLimitError]: 429 Rate limit reached, try again in 20s", "rate_limit", 20),
        ("[Stream Error] Rate limit reached for this key", "rate_limit", None),
        ("(Acme_APICallError) Rate limit reached for this key", "rate_limit", None),
        ('12:00:01 error job failed {"who": "one", "message": "Usage limit reached"}', "quota", None),
        ("API Error: The service is temporarily limiting requests", "rate_limit", None),
        ('{"type": "overloaded_error", "message": "Overloaded"}', "overloaded", None),
        ("{ type: 'error', error: { type: 'overloaded_error', message: 'Busy' } }", "overloaded", None),
        ("{\n  status: 429,\n  headers: { 'retry-after': '30' },\n  error: { message: 'slow' }\n}", "rate_limit", 30),
        ("Error: { code: 'usage_limit_reached', resets_in_seconds: 600 }", "quota", 600),
        ("AcmeError [HTTP 429]\n{'type': 'usage_limit_reached', 'message': 'x', 'resets_in_seconds': 9}", "quota", 9),
        ("HTTP/2 429\ndate: Mon, 06 Jul 2026 12:00:00 GMT\nretry-after: 120", "rate_limit", 120),
        ("Rate limit exceeded. retry-after-ms: 1500", "rate_limit", 1.5),
        ("Rate limit exceeded, retry_after_ms=2500", "rate_limit", 2.5),
        ("Rate limit exceeded, retryAfter: 30", "rate_limit", 30),
        ('429: {"type": "rate_limit_error", "message": "Too many requests"}', "rate_limit", None),
        ('503: {"error": {"message": "Overloaded"}}', "overloaded", None),
        ("[relay/inner] turn over: error=Usage limit reached, try again in ~90 min", "quota", 5400),
        ("run=7 rawError=You have hit your usage limit. Try again in 2 hours. model=x", "quota", 7200),
        ("Error: Acme free tier quota exceeded. See the plans page.", "quota", None),
        ('{"status": "rejected", "rateLimitType": "five_hour", "resetsAt": 1783342800}', "quota", 3600),
    ],
)  # fmt: skip
def test_a_failure_is_heard_in_any_of_these_shapes(text, kind, seconds):
    assert read(text) == (kind, seconds)


def test_a_place_that_python_marks_in_a_trace_opens_no_fence():
    trace = "Traceback (most recent call last):\n    answer.check()\n    ~~~~~~~~~~~~^^\n"
    assert read(trace + "acme.HTTPError: Client error '429 Too Many Requests'") == (
        "rate_limit",
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "Das Limit war gestern erreicht; die Arbeit geht weiter.",
        "const cases = [\n  { type: 'error', message: 'rate limit exceeded' },\n]",
        "expect(map({ status: 429, message: 'Too many requests' })).toBe('rate_limit')",
        "- error messages about rate limits: 429 is retried now",
        "{ id: 1, title: 'Rate limit exceeded page', done: false }",
        '  <p className="hint">Usage limit reached, resets {status?.at ? at(status) : "soon"}.</p>',
        "You've hit your limit · resets {time}",
        "Usage limit reached, resets at ${resetAt}",
        "Rate limit reached, try again in %ds",
        "Usage limit reached. Try again in {wait:.0f} seconds",
        '{"status": "allowed_warning", "rateLimitType": "five_hour", "resetsAt": 1783342800}',
        "429: { retries: limitOf(plan) }",
    ],
)
def test_source_code_and_lists_are_not_heard(text):
    assert read(text) == (None, None)


BANNERS = (
    "You've hit your weekly limit · resets 9pm",
    "5 hour usage limit reached. It will reset in 2 hours 5 minutes.",
    'API Error: 429 {"error": {"code": "busy", "message": "Usage limit reached, resets 9pm"}}',
    "Error code: 429 - {'error': {'message': 'Rate limit reached, try again in 20s'}}",
)
SHOWN = (
    "Title: [BUG] {0}\nLabels: area:cost",
    "#1234 [Bug] {0}",
    "The agent prints `{0}` and exits with 1, so a script must look at the text.",
    "I added a check for `{0}` in `limits.py`, and the wrapper waits now.",
    "patterns:\n  - id: limit\n    text: `{0}`",
    "    Parse `{0}`\n\n    The old pattern missed the zone.",
    "  ⎿  {0}\n\n❯ go on\n\n⏺ I went on where I had stopped: the parser is split into three modules now.",
)


@pytest.mark.parametrize("banner", BANNERS)
@pytest.mark.parametrize("shape", SHOWN)
def test_a_banner_that_is_only_talked_about_is_not_heard(shape, banner):
    assert read(shape.replace("{0}", banner), agent="claude")[0] is None


def test_a_limit_under_a_subagent_is_the_runs():
    text = "⏺ Task(Second review)\n  ⎿  You've hit your limit · resets 9pm\n"
    assert read(text, agent="claude") == ("quota", 7 * HOUR)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("acme.ServiceUnavailableError: the upstream said no", "overloaded"),
        ("acme.OverloadedError: the upstream said no", "overloaded"),
        ("acme.ContextWindowExceededError: the upstream said no", "context_length"),
        ("acme.ContentPolicyViolationError: the upstream said no", "content_policy"),
        ("acme.PermissionDeniedError: the upstream said no", "auth"),
        ("acme.BudgetExceededError: the upstream said no", "billing"),
        ("acme.ReadTimeout: the upstream said no", "network"),
        ("An error occurred (ServiceUnavailableException) when calling the Go operation: no", "overloaded"),
        ("acme.RouterError: No deployments available for this model", "rate_limit"),
        ("AcmeError: {'message': 'Request was rejected due to rate limiting'}", "rate_limit"),
    ],
)  # fmt: skip
def test_the_name_of_an_error_says_what_its_message_does_not(text, kind):
    assert read(text)[0] == kind


def test_a_narrow_terminal_cuts_where_the_next_word_has_no_room():
    lines = ["▌ 5-hour limit reached · resets 9:10pm", "(Europe/Berlin) · /upgrade to the plan", "that is bigger or turn on more usage"]  # fmt: skip
    assert read("\n".join(lines) + "\nagent exited with code 1") == ("quota", 7 * HOUR + 600)

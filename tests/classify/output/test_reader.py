from __future__ import annotations

import json
from datetime import UTC, datetime
from http import HTTPStatus
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.http import judge_words
from mulligan.config.packs import find_packs
from mulligan.core.failure import Kind, Reach

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
BERLIN = ZoneInfo("Europe/Berlin")
PACKS = load_packs(find_packs(environ={}, folder=None)).packs


def outcome(stdout="", stderr="", *, agent="", exit_code=None):
    return read_output(
        stdout, stderr, packs=PACKS, now=NOW, zone=BERLIN, agent=agent, exit_code=exit_code
    )


def kind(*args, **kwargs):
    found = outcome(*args, **kwargs).failure
    return None if found is None else str(found.kind)


def lines(*events):
    return "\n".join(json.dumps(event) for event in events)


@pytest.mark.parametrize(
    ("text", "expected", "reset"),
    [
        ("You've hit your limit · resets 9pm (Europe/Berlin)", "quota", 25200),
        ("You've hit your Fable limit · resets 9pm", "quota", 25200),
        ("  ⎿  5-hour limit reached ∙ resets 9pm\n     /upgrade to see more", "quota", 25200),
        ("Claude AI usage limit reached|1783350000", "quota", 10800),
        ("run 12 failed with Claude AI usage limit reached|1783350000", "quota", 10800),
        ("You're out of extra usage · resets Jul 8, 8pm (Europe/Berlin)", "quota", 194400),
        ("You're out of extra usage · add more in the settings", "billing", None),
        ("You've hit your monthly spend limit · raise it in the console", "billing", None),
        ("Server is temporarily limiting requests (not your usage limit)", "rate_limit", None),
        ("■ You’ve hit your usage limit. Upgrade, or try again at 3:51 PM.", "quota", 6660),
        ("ERROR: You’ve hit your usage limit, try again at Jul 8th, 2026 2:14 AM.", "quota", 130440),
        ("Individual quota reached. Resets in 167h39m40s.", "quota", 603580),
        ("You have exhausted your daily quota on this model.", "quota", None),
        ("Usage limit reached for all Pro models.\nAccess resets at 3:45 PM GMT+2.", "quota", 6300),
        ("Sorry, you've hit a rate limit that restricts requests. Try again in 58 hours.", "quota", 208800),
        ("5 hour usage limit reached. It will reset in 5 hours 23 minutes.", "quota", 19380),
        ("429 Rate limit reached for m on tokens per min: Limit 9, Used 9, Requested 1. Try again in 2s", "rate_limit", 2),
        ("litellm.RateLimitError: XException - slow down, retry after 30 seconds", "rate_limit", 30),
        ("Error code: 429 - {'error': {'code': 'insufficient_quota'}}", "billing", None),
        ("Error code: 429 - {'error': {'code': 'insufficient_quota'}} Please retry after 9 seconds", "rate_limit", 9),
        ("Requests to the X Operation have exceeded call rate limit. Please retry after 7 seconds.", "rate_limit", 7),
        ("gh: API rate limit already exceeded for user ID 7.", "rate_limit", None),
        ("API Error: 529 Overloaded. Try again in a moment.", "overloaded", None),
        ("API Error: 500 Internal server error", "server", None),
        ("API Error: Connection dropped (ECONNRESET).", "network", None),
        ("Invalid API key · Run /login again", "auth", None),
        ("Prompt is too long · the request is ~214000 tokens", "context_length", None),
        ("400 This model's maximum context length is 8 tokens. You sent 9.", "context_length", None),
        ("Request too large for gpt-x on tokens per min (TPM): Limit 30, Requested 342.", "context_length", None),
        ("429 Rate limit reached: Limit 7000, Used 0, Requested 12903. Try again in 50s", "context_length", 50),
        ("Quota exceeded for metric: x/y, limit: 0\nPlease retry in 25s", "billing", 25),
        ("The model `gpt-x` does not exist or you do not have access to it.", "client", None),
        ("402 Insufficient Balance", "billing", None),
        ("Du hast dein Nutzungslimit erreicht. Versuche es um 15:30 erneut.", "quota", 5400),
        ("Você atingiu o limite de uso. Tente novamente às 21h.", "quota", 25200),
        ("您的使用额度已用尽，将于 2026-07-06 16:00:00 重置", "quota", 7200),
    ],
)  # fmt: skip
def test_a_programs_own_words_are_understood(text, expected, reset):
    found = outcome(text)
    assert (None if found.failure is None else str(found.failure.kind)) == expected
    assert (None if found.reset is None else found.reset.seconds) == (
        pytest.approx(reset) if reset is not None else None
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done. All 12 tests pass.",
        "You've used 98% of your weekly limit · resets Aug 5 at 1pm",
        "Approaching usage limit · resets at 3pm",
        "Session limit reset · continuing automatically",
        "Weekly limit: [████░░] 56% left (resets 03:16 on 2 Dec)",
        "The limiter answers 429 Too Many Requests, and its counter resets at 9pm.",
        'The CLI printed "You\'ve hit your limit · resets 9pm" and exited.',
        "If you see `usage limit reached|1783350000`, wait.",
        "```\nYou've hit your limit · resets 9pm\n```",
        "$ cat notes.md\nYou've hit your limit · resets 9pm",
        "notes.md:3: You've hit your limit · resets 9pm",
        "⏺ Read(notes.md)\n  ⎿  You've hit your limit · resets 9pm",
        "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+You've hit your limit · resets 9pm",
        "You've hit your limit · resets 9pm\n\nThat line is what the parser must find, so I added it.",
        "You've hit your limit · resets 9pm is what the banner says.",
        "[retrying in 2h5m attempt #4] Too Many Requests",
        "Attempt 1 failed with status 429. Retrying with backoff...",
        "HTTP/1.1 200 OK\nx-ratelimit-remaining-requests: 0",
        "Speed limit reached on axis X, controller resets at 9pm",
        "write failed: disk quota exceeded",
        '127.0.0.1 - - [13/Jun/2026] "GET / HTTP/1.1" 429 -',
        "if resp.status_code == 429:\n    retry_after = 30",
        "We agreed that the usage limit reached its purpose.",
    ],
)  # fmt: skip
def test_talk_about_limits_is_not_a_limit(text):
    assert kind(text) is None


@pytest.mark.parametrize(
    "prefix",
    [
        "[2026-07-06T12:00:00.135Z] [ERROR] ",
        "2026-07-06 12:00:00,123 - agent - ERROR - ",
        "2026-07-06 12:00:00.123 | ERROR    | app.agents:run:42 - ",
        "Jul 06 12:00:00 host claude[123]: ",
        "E0706 12:00:00.123456 17 main.go:42] ",
        "worker-1  | ",
        "ERROR:agents.claude:",
        "✗ Claude CLI failed (exit 1): ",
        "[worker-3] task 12 failed: ",
        "╰─ ⚠️  ",
        "... ",
        "> ",
    ],
)
def test_what_loggers_and_wrappers_put_in_front_does_not_hide_a_banner(prefix):
    found = outcome(prefix + "You've hit your limit · resets 9pm")
    assert found.failure is not None
    assert found.failure.kind is Kind.QUOTA
    assert found.reset is not None
    assert found.reset.seconds == 25200


def test_events_behind_a_loggers_prefix_are_events():
    failed = json.dumps({"type": "turn.failed", "error": {"message": "usage_limit_reached"}})
    found = outcome(
        f"[2026-07-06T12:00:00Z] [INFO] started\n[2026-07-06T12:00:01Z] [INFO] {failed}"
    )
    assert found.source == "codex turn.failed event"


@pytest.mark.parametrize(
    "text",
    [
        "Big Model limit reached, now using Small Model; switching to haiku",
        "⚡ Possible quota limitations in place. Switching to the small-flash model for the rest of it.",
        "When the weekly limit is reached, the program says when it resets: 9pm.",
        "Waiting for the reset of the rate limit at 15:00 ... done. On to batch 4 of 9.",
        "Plan usage: session limit 34% used (resets 9pm), weekly limit 71% used (resets Jul 9).",
    ],
)
def test_what_the_program_gets_over_is_not_a_failure(text):
    assert kind(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"detail":"Rate limit exceeded. Try again in 12 seconds"}',
        '{"code":429,"msg":"too many requests, retry after 12 seconds"}',
        '{"statusCode":429,"message":"Rate limit is exceeded. Try again in 12 seconds."}',
        '[{"error":{"code":429,"message":"exhausted, retry in 12s","status":"RESOURCE_EXHAUSTED"}}]',
        '[ERROR] [429]: { "error": { "code": 429, "retryDelay": "12s" } }',
        'data: {"type":"error","error":{"type":"rate_limit_error","message":"retry in 12s"}}',
    ],
)
def test_bodies_of_every_make_are_error_bodies(text):
    found = outcome(text)
    assert found.failure is not None
    assert found.failure.kind is Kind.RATE_LIMIT
    assert found.reset is not None
    assert found.reset.seconds == 12


def test_the_words_of_a_failed_run_count_even_above_later_prose():
    text = "You've hit your limit · resets 9pm\n\nSession saved. Total cost: see the console page for it."
    assert kind(text, exit_code=1) == "quota"


def test_nothing_recognised_is_unknown_only_if_the_exit_code_says_so():
    assert kind("something odd", exit_code=0) is None
    assert kind("something odd") is None
    assert kind("something odd", exit_code=3) == "unknown"
    assert outcome("something odd", exit_code=3).because == "exit code 3"


def test_an_error_on_stderr_was_survived_if_stdout_has_an_answer_and_the_exit_code_is_zero():
    error = "API Error: 529 Overloaded"
    assert kind("Here is the plan.", error, exit_code=0) is None
    assert kind("", error, exit_code=0) == "overloaded"
    assert kind("Here is the plan.", error, exit_code=1) == "overloaded"


def test_claude_says_success_and_means_an_error():
    text = lines(
        {"type": "system", "subtype": "init", "mcp_servers": []},
        {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"},
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 529, "result": ""},
    )  # fmt: skip
    found = outcome(text, exit_code=1)
    assert found.failure is not None
    assert found.failure.kind is Kind.OVERLOADED
    assert (found.agent, found.is_structured) == ("claude", True)


def test_claude_names_the_reset_in_an_event_and_the_limit_in_another():
    text = lines(
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": NOW + 600}},
        {"type": "result", "subtype": "success", "is_error": True, "result": "You've hit your limit"},
    )  # fmt: skip
    found = outcome(text)
    assert found.failure is not None
    assert found.failure.kind is Kind.QUOTA
    assert found.failure.hint is not None
    assert found.failure.hint.delay == 600


def test_an_instant_for_machines_is_more_exact_than_the_minute_that_people_are_told():
    """Also while that minute runs: its end is what people must wait for, machines need not."""
    text = lines(
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": NOW + 32}},
        {"type": "result", "is_error": True, "result": "You've hit your limit · resets 2pm (Europe/Berlin)"},
    )  # fmt: skip
    found = read_output(text, packs=PACKS, now=NOW + 30, zone=BERLIN, exit_code=1)
    assert found.failure is not None
    assert found.failure.hint is not None
    assert found.failure.hint.delay == 2


@pytest.mark.parametrize("status", ["allowed", "allowed_warning"])
def test_a_healthy_rate_limit_event_is_no_limit(status):
    info = {"status": status, "resetsAt": NOW + 600, "overageStatus": "rejected"}
    assert kind(lines({"type": "rate_limit_event", "rate_limit_info": info})) is None


def test_a_rejected_window_that_overage_pays_for_is_cleared_by_the_work_that_follows():
    info = {"status": "rejected", "resetsAt": NOW + 600, "isUsingOverage": True}
    limit = {"type": "rate_limit_event", "rate_limit_info": info}
    assert kind(lines(limit)) == "quota"
    done = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}
    assert kind(lines(limit, {"type": "assistant", "message": {"content": []}}, done)) is None


def test_what_tools_and_models_said_is_not_evidence():
    banner = "You've hit your limit · resets 9pm"
    text = lines(
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": banner}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": banner}]}},
    )
    assert kind(text) is None


def test_a_banner_that_is_the_whole_answer_is_a_limit_and_in_an_answer_is_not():
    def result(text):
        return lines({"type": "result", "subtype": "success", "is_error": False, "result": text})

    assert kind(result("You've hit your limit · resets 9pm")) == "quota"
    assert kind(result("I explained that You've hit your limit · resets 9pm is a banner.")) is None


def test_an_api_retry_alone_is_progress_and_a_death_while_retrying_is_what_was_retried():
    retry = lines(
        {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"}
    )
    assert outcome(retry).is_progress
    assert kind(retry) is None
    assert kind(retry, exit_code=1) == "overloaded"


def test_codex_reconnecting_is_progress_and_turn_failed_is_the_end():
    notice = {"type": "error", "message": "Reconnecting... 1/5 (unexpected status 503)"}
    failed = {
        "type": "turn.failed",
        "error": {"message": "unexpected status 503 Service Unavailable"},
    }
    assert kind(lines({"type": "thread.started", "thread_id": "t"}, notice)) is None
    assert kind(lines(notice, {"type": "turn.completed"})) is None
    found = outcome(lines(notice, failed), exit_code=1)
    assert found.source == "codex turn.failed event"
    assert found.failure is not None
    assert found.failure.kind in (Kind.SERVER, Kind.OVERLOADED)


def test_codex_states_the_time_in_the_error_before_the_end():
    text = lines(
        {"type": "error", "message": "You’ve hit your usage limit. Try again at 3:00 PM."},
        {"type": "turn.failed", "error": {"message": "You’ve hit your usage limit."}},
    )
    found = outcome(text, agent="codex", exit_code=1)
    assert found.reset is not None
    assert found.reset.seconds == 3600


def test_an_error_that_codex_survived_is_not_a_failure():
    error = {"type": "error", "message": "stream disconnected before completion"}
    work = {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}}
    assert kind(lines(error, work)) is None


@pytest.mark.parametrize(
    ("event", "agent", "expected"),
    [
        ({"type": "result", "status": "error", "error": {"type": "x", "message": "[API Error: terminated]"}}, "gemini", "network"),
        ({"session_id": "s", "error": {"type": "Error", "message": "quota will reset after 1h", "code": 429}}, "gemini", "quota"),
        ({"session_id": "s", "response": "hi", "stats": {}}, "gemini", None),
        ({"type": "error", "sessionID": "s", "error": {"name": "APIError", "data": {"message": "no", "statusCode": 429}}}, "opencode", "rate_limit"),
        ({"type": "session.error", "data": {"errorType": "rate_limit", "message": "wait", "statusCode": 429}}, "copilot", "rate_limit"),
        ({"type": "run_result", "finishReason": "error", "text": "The usage limit has been reached"}, "cline", "quota"),
        ({"type": "agent_event", "event": {"type": "error", "recoverable": True, "error": {"message": "429"}}}, "cline", None),
        ({"type": "auto_retry_end", "success": False, "finalError": "429 Too Many Requests"}, "pi", "rate_limit"),
        ({"type": "auto_retry_start", "attempt": 1, "errorMessage": "503"}, "pi", None),
        ({"type": "agent_end", "messages": [{"role": "assistant", "stopReason": "error", "errorMessage": "401 Incorrect API key"}]}, "pi", "auth"),
        ({"params": {"error": {"message": "usage_limit_reached"}, "willRetry": False}, "method": "error"}, "codex", "quota"),
        ({"params": {"error": {"message": "503"}, "willRetry": True}, "method": "error"}, "codex", None),
    ],
)  # fmt: skip
def test_events_are_known_by_their_shape(event, agent, expected):
    found = outcome(lines(event))
    assert (None if found.failure is None else str(found.failure.kind)) == expected
    assert found.agent == agent


@pytest.mark.parametrize(
    ("body", "expected", "reset"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded", None),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "RetryInfo", "retryDelay": "34.5s"}]}}, "rate_limit", 34.5),
        ({"error": {"type": "usage_limit_reached", "resets_in_seconds": 600}}, "quota", 600),
        ({"error": {"type": "usage_limit_reached", "resets_at": NOW + 900}}, "quota", 900),
        ({"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": '{"error":{"retry_after_ms":5000}}'}}}, "rate_limit", 5),
        ({"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}, "rate_limit", None),
        ({"message": "Bad credentials", "documentation_url": "https://example.org"}, "auth", None),
        ({"error": {"code": "1308", "message": "Usage limit reached for 5 hour. It will reset at 2026-07-06 22:00:00"}}, "quota", 7200),
        ({"error": {"message": "x", "details": {"error_code": "enforced_spend_limit_reached"}}}, "billing", None),
    ],
)  # fmt: skip
def test_error_bodies_are_read_with_their_fields(body, expected, reset):
    found = outcome(json.dumps(body))
    assert found.failure is not None
    assert str(found.failure.kind) == expected
    assert (None if found.reset is None else found.reset.seconds) == (
        None if reset is None else pytest.approx(reset)
    )
    assert not found.is_structured


def test_headers_around_a_body_state_the_reset():
    text = "HTTP/1.1 429 Too Many Requests\nretry-after: 19380\n\n" + json.dumps(
        {"type": "error", "error": {"message": "Subscription quota exceeded"}}
    )
    found = outcome(text)
    assert found.reset is not None
    assert found.reset.seconds == 19380


def test_an_event_in_the_middle_of_a_line_is_found():
    event = json.dumps({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": NOW + 60}}, separators=(",", ":"))  # fmt: skip
    assert kind('{"type":"assistant","message":{"content":"half a li' + event + "ne") == "quota"


def test_a_pretty_printed_error_below_human_lines_is_found():
    body = json.dumps(
        {"session_id": "s", "error": {"message": "Quota exceeded", "code": 429}}, indent=2
    )
    assert (
        kind("", f"Warning: basic terminal.\nRipgrep is missing.\n{body}\n", exit_code=173)
        == "rate_limit"
    )


def test_geminis_exit_code_is_the_status_modulo_256():
    assert kind("", "", agent="gemini", exit_code=173) == "rate_limit"
    assert kind("", "", agent="gemini", exit_code=247) == "server"
    assert kind("", "", agent="gemini", exit_code=41) == "auth"
    assert kind("", "", agent="claude", exit_code=173) == "unknown"


def test_a_zone_that_the_banner_above_names_counts_for_the_line_below():
    text = "You've hit your limit · resets 10pm (UTC)\n\n  ⚠ Usage limit reached · continuing automatically at 10pm"
    found = outcome(text)
    assert found.reset is not None
    assert found.reset.seconds == 36000


def test_wraps_borders_and_colours_do_not_hide_a_banner():
    text = (
        "╭──────────────────────────────────────────╮\n"
        "│ \x1b[31mYou’ve hit your usage limit\x1b[0m. Please try │\n"
        "│ again at Jul 7th, 2026                   │\n"
        "│ 2:00 AM.                                 │\n"
        "╰──────────────────────────────────────────╯"
    )
    found = outcome(text)
    assert found.failure is not None
    assert found.reset is not None
    assert found.reset.seconds == 12 * 3600


def test_a_message_is_masked_and_cut_before_it_is_kept():
    found = outcome(
        "API Error: 401 Incorrect API key provided: sk-live-abcdefghijklmnop1234 \x1b]0;x\x07"
        + "x" * 900
    )
    assert "abcdefghijklmnop" not in found.message
    assert "\x1b" not in found.message
    assert len(found.message) <= 500


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 409, 412, 413, 422, 423, 425, 429,
                                    498, 500, 501, 502, 503, 504, 505, 511, 520, 529])  # fmt: skip
def test_a_printed_status_proves_no_more_than_the_same_status_in_an_answer(status):
    """Left over from issue 12: a printed 500 was called answered, so that a call could be repeated
    that a crashed server may have applied."""
    phrases = {each.value: each.phrase for each in HTTPStatus}
    words = f"{status} {phrases.get(status, 'Error')}"
    printed = outcome(f"API Error: {words}").failure
    assert printed is not None
    assert printed.reach is judge_words(status, words, now=NOW).reach


def test_a_refused_connection_was_never_sent_and_a_lost_one_may_have_been_applied():
    refused = outcome("API Error: Connection refused (ECONNREFUSED)").failure
    dropped = outcome("API Error: Connection dropped (ECONNRESET)").failure
    assert refused is not None
    assert dropped is not None
    assert (refused.reach, dropped.reach) == (Reach.NEVER_SENT, Reach.MAYBE_APPLIED)

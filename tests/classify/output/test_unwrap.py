"""What programs say, as others hand it on: cut, stamped, quoted, dumped, behind a prefix."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output.json_stream import completed
from mulligan.classify.output.unwrap import unwrapped
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
HOUR = 3600.0
BANNER = "You've hit your session limit · resets 9pm"


def read(text, **kwargs):
    """Kind and seconds to the reset."""
    found = read_output(text, packs=PACKS, now=NOW, zone=ZoneInfo("Europe/Berlin"), **kwargs)
    kind = None if found.failure is None else str(found.failure.kind)
    return kind, None if found.reset is None else found.reset.seconds


@pytest.mark.parametrize(
    "text",
    [
        "Session limit reached – resets in 7 hours",
        "Acme usage limit reached. Your limit will reset \n     at 9pm (Europe/Berlin).",
        "“Weekly limit reached. It will reset in 7 hours.”",
        "`Weekly limit reached. It will reset in 7 hours.`",
        f'Agent "check part 12" failed: {BANNER}\nAgent "check part 13" failed: {BANNER}',
        f"Node 'plan' failed: {BANNER}",
        f"Error invoking remote method 'session:prompt': Error: {BANNER}",
        f'result:   "{BANNER}"\nis_error: True     num_turns: 1',
        f'12:00:01 [lane] task error: "⚠️ {BANNER}"',
        f"[XSS] {BANNER}",
        f"[acme-queue] worker 3 stopped: {BANNER}",
        f"acme exited with code 1: {BANNER}",
        f'task 7: acme/large — `failed` — "{BANNER}"',
        f"Paused: {BANNER}",
        'acme: profile "work" 5h quota exhausted, resets 2026-07-06T19:00:00Z',
        f'2026-07-06T12:00:00Z | agent=a | in=0 out=0 | tier=None | err=rate_limit | "{BANNER}"',
        f'"result": "{BANNER}"',
        json.dumps({"hook_event_name": "Stop", "last_assistant_message": BANNER}),
        json.dumps(
            {"session_id": "x", "hook_event_name": "StopFailure", "error": "rate_limit",
             "last_assistant_message": BANNER}
        ),
        json.dumps(
            {"type": "assistant", "message": {"model": "<synthetic>", "content": [
                {"type": "text", "text": BANNER}]}}
        ),
        f"{{\n  type: 'result',\n  subtype: 'success',\n  is_error: true,\n  result: \"{BANNER}\"\n}}",
        f"run.Failed: ResultMessage(subtype='success', is_error=True, num_turns=1, result=\"{BANNER}\")",
        f'**Summary:** {{"type":"result","is_error":true,"result":"{BANNER}"}}: exit status 1',
        json.dumps(
            {"type": "session.error", "properties": {"error": {"name": "APIError", "data": {
                "message": "Weekly usage limit reached. It will reset in 7 hours.",
                "statusCode": 429}}}}
        ),
        json.dumps({"type": "result", "content": {"success": False, "errors": [BANNER]}}),
        json.dumps({"event": "run.failed", "message": "Your allowance is exhausted.",
                    "available_at": int(NOW + 7 * HOUR)}),
        json.dumps({"ts": "x", "lvl": "fatal", "msg": "plan window exhausted",
                    "opens_at": "2026-07-06T19:00:00Z"}),
        ("RateLimitEvent(rate_limit_info=RateLimitInfo(status='rejected', "
        f"resets_at={int(NOW + 7 * HOUR)}, rate_limit_type='five_hour'), uuid='x')"),
        f"{BANNER}\n\n› Find and fix a bug in @filename\n\n  acme-5 high · 61% left · ~/src/api",
        f"⏺ Bash(make)\n  ⎿  ok  a  4s\n     ok  b  2s\n\n  {BANNER}\n\n✻ Churned for 6m 40s",
        "anthropic-ratelimit-unified-5h-status=rejected\nretry-after=25200",
        f"  ⎿  {BANNER}\n\n❯ /limits\n What do you want to do?\n\n ❯ 1. Stop and wait for limit to reset",
        json.dumps({"runner": "acme", "exit_code": 1, "last_lines": [f"ERROR: {BANNER}"]}),
        f'  "typed_failure": {{\n    "code": "window_spent",\n    "said": "a1: {BANNER}"\n  }},\n  "n": 1,',
        json.dumps({"is_error": True, "result": BANNER}),
        json.dumps({"ok": False, "error": "acme exited with code 1", "stdout": f"{BANNER}\n"}),
        json.dumps({"level": 50, "msg": "acme exited", "code": 1, "stdout": f"{BANNER}\n"}),
        f"$ echo go on | claude -p\n{BANNER}\n$ ",
        f"- Return code: 1\n- Stderr:\n```text\nAcme 1.0\nERROR: {BANNER}\n```",
        f"● {BANNER}\n\n※ recap: the first layer is done, the cache is next. (see /config)",
        "The 5-hour usage limit has been reached.\nIt resets 9pm.\nYou can either:\n  1) Wait\n  2) Exit",
        ('{"type": "result", "is_error": true, "num_turns": 1}\nError: Acme returned an error result: '
        f"{BANNER}\nError: Process completed with exit code 1."),
        json.dumps({"type": "event_msg", "payload": {"type": "task_complete", "error": {
            "message": BANNER}}}),
        json.dumps({"object": "chat.completion", "choices": [{"message": {
            "content": f"Error: API request failed (429): {BANNER}"}}]}),
        ('12:00:00 WARN proxy/handler.go:412 upstream said no {"account": "a", "status": 429, "body": '
        '"{\\"error\\":{\\"type\\":\\"usage_limit_reached\\",\\"resets_in_seconds\\":25200}}"}'),
    ],
)  # fmt: skip
def test_a_limit_in_somebody_elses_dress_is_a_limit(text):
    assert read(text, agent="claude") == ("quota", 7 * HOUR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ("| 07.png | scan | error | — | SYSTEM: no answer after 3 attempts: Error code: 429 - "
            "{'error': {'code': 429, 'message': 'Too many requests. Please retry in 15s.'}} |"),
            ("rate_limit", 15.0),
        ),
        (
            ("  - Worker: call failed: Error calling model 'm' (RESOURCE_EXHAUSTED): 429 "
            "RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'Please retry in 15s.'}}"),
            ("rate_limit", 15.0),
        ),
        ("| 429 | the server asks for a pause | wait, then try again |", (None, None)),
        ("- 429: too many requests, see the table of errors", (None, None)),
    ],
)  # fmt: skip
def test_an_error_in_one_row_or_item_is_read_and_a_list_of_statuses_is_not(text, expected):
    assert read(text) == expected


def test_an_agent_that_speaks_below_an_error_has_survived_it():
    error = "acme.RateLimitError: slow down\n12:00:01 - acme:INFO: call.py:1 -\ncall(model='m')"
    answer = "[helper]: I am an assistant that took over, and here is the answer to your question."
    assert read(error)[0] == "rate_limit"
    assert read(f"{error}\n{answer}") == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ("[2026-07-06T12:00:01.123Z] [INFO] {\n"
            '[2026-07-06T12:00:01.123Z] [INFO]   "type": "result",\n'
            '[2026-07-06T12:00:01.123Z] [INFO]   "is_error": true,\n'
            '[2026-07-06T12:00:01.123Z] [INFO]   "api_error_status": 529,\n'
            '[2026-07-06T12:00:01.123Z] [INFO]   "result": "Overloaded. Try again in a mom'),
            ("overloaded", None),
        ),
        (
            ('{\\"type\\":\\"error\\",\\"error\\":{\\"type\\":\\"rate_limit_error\\",'
            '\\"message\\":\\"slow\\"}}", "preview": ""}'),
            ("rate_limit", None),
        ),
        (
            ('"exception": {\n  "class": "AcmeException",\n'
            '  "message": "API rate limit exceeded for installation ID 7.",\n  "code": 403\n}'),
            ("rate_limit", None),
        ),
        (
            ('    "response": {\n      "statusCode": 403,\n      "body": {\n'
            '        "message": "API rate limit exceeded for 203.0.113.9."\n      },\n'
            '      "headers": {\n        "x-ratelimit-remaining": "0",\n'
            f'        "x-ratelimit-reset": "{int(NOW + 90)}",\n        "x-ratelimit-resou'),
            ("rate_limit", 90.0),
        ),
        (
            ("HTTP/2.0 403 Forbidden\nX-Ratelimit-Remaining: 0\n"
            f"X-Ratelimit-Reset: {int(NOW + 90)}\n\n"
            '{"message":"API rate limit exceeded for 203.0.113.9."}'),
            ("rate_limit", 90.0),
        ),
        (
            'job=7 attempt=2 agent=m\n  error="m failed: API Error: Request rejected (429) - slow"',
            ("rate_limit", None),
        ),
        (
            '{"message":"call failed: This request would exceed your rate limit","stack":"at f"}',
            ("rate_limit", None),
        ),
        (
            '{"level":"error","msg":"429 Too many requests","headers":{"retry-after":"23"}}',
            ("rate_limit", 23.0),
        ),
        ("Error: 429 status code (no body)\n  headers: { 'retry-after': '18' }", ("rate_limit", 18.0)),
        (
            ("12:00:01 WARN acme::service: https://api.acme.test/v1 → 401 Unauthorized "
            '{"type":"error","error":{"type":"authentication_error","message":"no"}}'),
            ("auth", None),
        ),
        (
            ("2026-07-06 12:00:01,015 [ 32]   INFO - STDOUT - Caused by: com.acme.ModelException: "
            'Provider unavailable: dev.acme.HttpException: {"type":"error","error":'
            '{"type":"rate_limit_error","message":"slow"}}'),
            ("rate_limit", None),
        ),
        ("openai.RateLimitError: it went wrong in some way", ("rate_limit", None)),
        ('Could not name it: RateLimitExceeded("Some(Object {"error": Object {"mess', ("rate_limit", None)),
        (
            ("Upstream provider ACME returned HTTP 402.\nCategory: other\nMapped message: It failed.\n\n"
            'Upstream error:\n{"error":{"message":"Insufficient credits.","code":402}}\n\nRequest ID: x'),
            ("billing", None),
        ),
        (
            "**Error details**\n\nStatus code: 402\n\n**Error output**\n```\n402 Insufficient credits\n```",
            ("billing", None),
        ),
        (
            ("google.api_core.exceptions.ResourceExhausted: 429 You exceeded your current quota. "
            '[violations {\n  quota_id: "PerMinute"\n}\n, retry_delay {\n  seconds: 36\n}\n]'),
            ("rate_limit", 36.0),
        ),
        (
            ("12:00:01 | ERROR | API error: Error code: 400 - {'error': {'message': \"This model's "
            'maximum context length is 8192 tokens."}}\n'
            "12:00:02 | ERROR | API error: Error code: 400 - {'error': {'message': \"This mod"),
            ("context_length", None),
        ),
        (
            ("Error details: acme failed for model 'm' (status=400): Error code: 400 -\n\n"
            "{'error': {'message': \"This model's maximum context length is\n\n131072 tokens.\"}}"),
            ("context_length", None),
        ),
        (
            ("Error: it failed\n    at run (/srv/a.js:1:2) {\n  status: undefined,\n  error: {\n"
            "    type: 'requests',\n    code: 'rate_limit_exceeded',\n"
            "    message: 'Rate limit reached for m. Please try again in 7m12s.',\n    param: null"),
            ("rate_limit", 432.0),
        ),
        (
            ("✗ Acme rate limit reached\n\nStats:\n  • Session: 100% (50 of 50)\n"
            "  • Time until reset: ~47 minutes"),
            ("rate_limit", 2820.0),
        ),
        (
            ('POST "https://api.acme.test/v1": 429 Too Many Requests (Request-ID: x) '
            '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'),
            ("rate_limit", None),
        ),
        (
            "Acme did not answer as it should.\nResponse:  &{429 Too Many Requests 429 HTTP/2.0 2 0 map[]}",
            ("rate_limit", None),
        ),
        (
            ("[2026-07-06 12:00:00,118][acme.api][WARNING] - Encountered API error: Exception Type: "
            "ResourceExhausted, Error Details: 429 Quota exceeded for acme.test/requests"),
            ("rate_limit", None),
        ),
        ("7 PERMISSION_DENIED: Acme has not been used in project 1 before.", ("auth", None)),
        ("gh: We couldn't respond to your request in time. (HTTP 504)", ("server", None)),
        (
            ("{\n  error: 'AcmeError: it failed.\\n' +\n    '* Quota exceeded for metric: a, limit: 20\\n' +\n"
            "    'Please retry in 34.5s.\\n' +\n    '    at run (main.js:1:2)\\n' +\n    '    at x (a:1:2)'\n}\n"
            "[2026-07-06 12:00:00.342] [error] Unhandled rejection: no output."),
            ("rate_limit", 34.5),
        ),
        (
            ("% watch\nFor more information see https://acme.test/403\n"
            "message: API rate limit exceeded. (Sign in for more.)\ndocumentation_url: https://acme.test"),
            ("rate_limit", None),
        ),
        (
            ("Error 429, Message: Resource exhausted. It says so for many words of prose that nobody reads.\n"
            "Details: [map[@type:QuotaFailure violations:[map[a:b]]]\nmap[@type:RetryInfo retryDelay:12s]]"),
            ("rate_limit", 12.0),
        ),
        ("status: 529,\n  headers: {\n    server: 'acme'\n  },\n  error: { type: 'overloaded_error' }", ("overloaded", None)),
        ("acme.APIError: {\n  'type': 'error',\n  'error': {'type': 'overloaded_error', 'message': 'x'}\n}", ("overloaded", None)),
        ("stream disconnected before completion: Your project has reached its enforced spend limit.", ("billing", None)),
        ('{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}', ("content_policy", None)),
    ],
)  # fmt: skip
def test_an_error_in_somebody_elses_dress_is_that_error(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        # tests, lists, trees, configuration
        f"    expect(limitOf('{BANNER}')).toEqual({{ at: 21 }});",
        "    expect(limitFailure('Claude AI usage limit reached|1783364400')).not.toBeNull();",
        "Errors of the API:\n\n* 429 - `rate_limit_error`: slow\n* 529 - `overloaded_error`: busy",
        'retry_on:\n    - 429\n    - 529\n    - "overloaded"',
        "fixtures/\n├── 529-overloaded.json\n└── quota_exceeded.html",
        "id,status,ms\n428,200,13\n529,200,91",
        "  429 labels compared, 3 created, 0 deleted",
        # others' exchanges that went well in the end
        "1 - Success\n2 - Failure (HTTP 429)\n3 - Success\n4 - Success",
        # other limits
        "You've reached the speed limit for this road. Your score resets on Monday at 00:00.",
        "Rate limit: 60 requests per minute",
        "Rate limit: 4999/5000 remaining, resets at 18:00",
        # people
        "Hi, our team hit the weekly limit on Tuesday, and it was reset on Friday at 8pm as told.",
        "Resolved - Elevated error rates\nBetween 14:05 and 14:52 some requests failed with 529.",
        "$ gh issue list -L 2\n79765  CLOSED  You've hit your limit · resets 5pm (UTC)   cost",
        f'The agent prints `API Error: 429 {{"error":{{"message":"{BANNER}"}}}}` and exits.',
        ("Error message:\n> Sorry, your request was rate-limited.\n\nMost people see it in previews, "
        "and it goes away by itself after a while, so there is nothing that you have to do."),
        "已完成：当上游返回 429（请求过于频繁）时，按指数退避重试，最多 5 次。",
        "## 背景\n\n確認項目「レート制限（429）」は再現が困難なため独立 issue とする。",
        "  - 「利用上限に達しました。15:00 にリセットされます」というバナーは quota とします。",
        # nobody dumped it: it stands in a file
        ("const limited = {\n  message: 'Rate limit reached. Please try again in 7m12s.',\n"
        "  code: 'rate_limit_exceeded',\n};"),
        "job=7 attempt=2 error=None status=ok",
        "# Postmortem\n\n**Primary signal:** HTTP 429 / ERR-RATE-429\n\n## Summary\nRetries made it worse.",
        "Both attempts returned:\n```\n"
        + json.dumps({"type": "error", "message": BANNER})
        + "\n```\nThe operator upgraded the plan, and the third attempt went through without trouble.",
        "もうすぐ週間制限に達します\n\n現在のセッション 49% 約2時間32分後にリセット",
        "Die API gibt overloaded_error mit dem Fehlertyp 529 zurück, wenn sie ausgelastet ist.",
        ("> curl -si localhost:3000/api | head\nHTTP/1.1 429 Too Many Requests\nRetry-After: 41\n\n"
        "The limiter works: the sixth request within a minute is refused."),
        "@retry(\n    retry=retry_if_exception_type(RateLimitError),\n    stop=stop_after_attempt(10),\n)",
        "Attempt 1 failed: No capacity available for model m. Retrying after 5843ms...\nI moved the table.",
        "429: Port Arthur\n503: Transit Center\n529: Express (no service on Sunday)",
        "It means you hit your session limit. Your API limit resets at midnight (UTC), so they differ.",
        json.dumps({"tool": "bash", "exit_code": 1, "output": f"ERROR: {BANNER}"}),
        "step: fallback\ndetail: 429 The service may be overloaded, try again later\noutcome: succeeded",
        ("HTTP request sent, awaiting response... 429 Too Many Requests\nRetrying.\n\n"
        "HTTP request sent, awaiting response... 200 OK\n2026-07-06 12:00:16 (432 KB/s) - saved [12/12]"),
        ("12:00:20 ERROR attempt 1 of 3 failed\nRateLimitError: Error code: 429 - {'error': 'slow'}\n"
        "12:00:24 INFO batch 7: 128 vectors written\n12:00:25 INFO all batches done, exit 0"),
        "Worker A fail: Acme::RateLimitExceeded (You have reached your rolling limit.) - retry in 16s (1/25)",
        'level=warn msg="request" try=0 err="rpc error: code = ResourceExhausted"\nlevel=info msg="sent" try=1',
        "{\n  status: 529,\n  error: { type: 'overloaded_error' }\n}\n✔ parses a 529 into a retryable error",
        "[WARNING] Could not transfer artifact a:b: status code: 429, Too Many Requests, trying mirror\n[INFO] BUILD SUCCESS",
        "402 Payment Required\n408 Request Timeout\n429 Too Many Requests\n503 Service Unavailable",
        "renovate: DEBUG: 429 Too many requests for https://acme.test/v2, using cached result",
        "│ day │ provider │ status │ kind │\n│ 1 │ acme │ 429 │ rate_limit_exceeded │ 31 │",
        "  ✔ 429 with retry-after: 17 (1.07921ms)\n  ✖ usage limit reached: waits (1.475166ms)",
        ('The error of yesterday ("API Error: Server is temporarily limiting requests (not your usage '
        'limit)") lasted four minutes. I ran the two jobs again; both finished.'),
        ("  ⎿  API Error (Connection error.) · Retrying in 2 seconds… (attempt 2/10)\n"
        "    ⎿  TypeError (fetch failed)\n\n⏺ Write(a.sql)\n  ⎿  Wrote 6 lines to a.sql"),
    ],
)  # fmt: skip
def test_what_is_shown_in_the_same_dress_is_not_heard(text):
    assert read(text) == (None, None)


@pytest.mark.parametrize("cut", range(2, 60))
def test_an_object_is_read_as_far_as_it_goes(cut):
    whole = {"type": "result", "is_error": True, "n": [1, {"a": 'b, "c" {'}], "result": "x"}
    text = json.dumps(whole)[:-cut]
    found = completed(text)
    for key in ("type", "is_error"):
        if f'"{key}": {json.dumps(whole[key])},' in text:
            assert found[key] == whole[key]
    assert found is None or set(found) <= set(whole)


def test_what_stands_below_a_cut_object_is_no_part_of_it():
    for begin in ('{"type": "assistant", "text": "and then', '{"type": "assistant",\n  "n": {'):
        assert read(f"{begin}\n{BANNER}", agent="claude") == ("quota", 7 * HOUR)


def test_a_text_that_nobody_dressed_is_left_alone():
    text = "> a quotation\nan answer\n\n“a” and “b”\n< a\n[2026-07-06T12:00:00Z] [INFO] done"
    assert unwrapped(text) == text

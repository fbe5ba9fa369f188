"""Wordings met after the grammar was written: what each taught, in words of our own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs


def outcome(stdout="", stderr="", *, agent="", exit_code=None):
    zone = ZoneInfo("Europe/Berlin")
    return read_output(
        stdout, stderr, packs=PACKS, now=NOW, zone=zone, agent=agent, exit_code=exit_code
    )


def kind(*args, **kwargs):
    found = outcome(*args, **kwargs).failure
    return None if found is None else str(found.kind)


def reset(*args, **kwargs):
    found = outcome(*args, **kwargs).reset
    return None if found is None else found.seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You've hit your usage limit\nGet Acme Plus for more agents, faster models and so on.", "quota"),
        ("Acme Search API access has reached rate limit. Try again later.", "rate_limit"),
        ("Reply(id='r1', choices=[], error={'message': 'upstream', 'code': 429}, user='u')", "rate_limit"),
        ('10:11:12 [lane/one] step error: "FailoverError: API rate limit reached."', "rate_limit"),
        ("Error code: 400 - {'error': {'message': 'Your request exceeded model token limit: 9'}}", "context_length"),
        ("gemini You have exhausted your capacity on this model. Your quota will reset after 9s", "quota"),
        ('"Tokens per minute limit exceeded - that was too much."', "rate_limit"),
        ("Your key's pattern of use breaks the rules, so your request frequency has been limited.", "rate_limit"),
        ("Too many concurrent sessions: 5 of 5 are open. Wait for one to end.", "rate_limit"),
        ("Daily image generation limit reached. Resets at 18:00.", "quota"),
        ("acme-code: usage quota exhausted (HTTP 403). Your plan is used up.", "quota"),
        ("acme_gateway: HTTP 401 Unauthorized", "auth"),
        ("Unexpected API Response: the language model did not provide any message.", "bad_answer"),
        ('{"message": "it failed", "details": {"error": {"code": "insufficient_quota"}}}', "billing"),
        ('job 12: acme/large — failed — "You have hit your weekly limit · resets 9pm"', "quota"),
        ("Your usage allocation has been disabled by your admin", "auth"),
        ("发生错误：{'error': {'code': 429, 'message': '...'}}", "rate_limit"),
        ("Fehler beim Aufruf: Rate limit reached", "rate_limit"),
        ('Acme answers {"error": {"code": 429, "message": "slow"}}', "rate_limit"),
        ("Rate limit exceeded: 429: slow\n└ Failed to set the provider up: no request did succeed.", "rate_limit"),
        ("error: quota exceeded for this billing period", "quota"),
        ("Error: Response status code does not indicate success: 500 (Server Error).", "server"),
        ('Acme API error HTTP 429 Too Many Requests: {"message": "slow"}', "rate_limit"),
        ('{"errorMessage": "Acme: Rate limit reached", "errorDescription": "come back"}', "rate_limit"),
        ('{"Success": false, "Error": {"Message": "API rate limit exceeded", "Code": 3}}', "rate_limit"),
        ("##[error]GraphQL Rate Limit Exceeded", "rate_limit"),
        ("Provider acme-6 returned 400: invalid_request_error: bad parameters", "client"),
        ('Error in step: the call failed:\n  Status: 500\n  Body: {"error":{"message":"oh"}}', "server"),
        ("error: <html>\n<head><title>502</title></head>\n<body>x</body>\n</html>", "server"),
        ("Error: This model is not enabled for your organization", "auth"),
        ("API Error: the API returned a malformed response (HTTP 200)", "server"),
        ('{"name": "ThrottlingException", "$fault": "client", "$metadata": {"httpStatusCode": 429}}', "rate_limit"),
        ("✗ Rate limit persisted after 4 tries. Please come back later.", "rate_limit"),
        ("429: The quota of tokens for this client is exceeded", "rate_limit"),
        ('{"type": "429 Too Many Requests", "title": "Slow", "detail": "Request quota exhausted."}', "rate_limit"),
        ('{"title": "Quota used up", "status": 429, "type": "https://acme.test/problems#quota"}', "quota"),
        ("Your team has hit its usage limit. Please wait before you send more.", "quota"),
        ("Acme Small capacity exceeded. Please choose another model.", "overloaded"),
        ('400 "The maximum prompt length is 900 but the request contains 1200 tokens."', "context_length"),
        ("API Error: The response exceeded the 900 output token maximum. Raise it.", "context_length"),
        ("Credit balance too low · add funds", "billing"),
        ("Your account may not use this program. Please run /login.", "auth"),
        ("status_code: 429, body: {'message': 'This key makes 20 calls a minute.'}", "rate_limit"),
        ("[log_5e] post https://acme.example/v1 failed with status 429 in 179ms; no tries left", "rate_limit"),
        ("Error: Rate Limit Error: Request too frequent, please come back", "rate_limit"),
        ("Agent 'reviewer' stopped: Weekly limit reached. Resets at 6pm.", "quota"),
        ("FATA[0103] could not list: GET https://acme.test/x: 403 API rate limit exceeded for 203.0.113.9.", "rate_limit"),
        ("Error: API error from acme (model: m): backend error [acme]\n  status: N/A\n  reason: ReadError('')\n  provider_message: Network error", "network"),
    ],
)  # fmt: skip
def test_a_limit_in_other_words_is_a_limit(text, expected):
    assert kind(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"result","is_error":false,"result":"The banner reads: You\'ve hit your limit · resets 3pm (UTC)"}',
        "You have reached a usage limit at Acme, so wait 1m47s. I believe this is no bug, closing.",
    ],
)
def test_somebody_who_explains_a_banner_has_not_met_it(text):
    assert kind(text) is None


def test_a_line_with_a_label_or_a_time_stamp_is_not_the_rest_of_the_line_above_it():
    above = "shape=first-turn-without-cost status=none retries=none"
    banner = "You've hit your session limit · resets 3:10pm (Europe/Berlin)"
    assert kind(f"{above}\nlast words (redacted): {banner}") == "quota"
    assert kind(f"10:11:11 {above}\n10:11:12 [runner] run failed: {banner}") == "quota"


def test_what_has_been_waited_already_is_no_reset():
    said = "No answer; tried 5 times (total retry wait time: 13.84 seconds) Last error: 429 busy"
    assert reset(f"Error: {said}") is None
    assert reset(f"Error: {said}. Please try again in 2s") == 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Review failed: Rate limit exceeded, please try after 37 minutes and 12 seconds", 2232),
        (
            "> ## Slow down\n>\n> @you exceeded the limit for reviews. Please wait **9 minutes**.",
            540,
        ),
    ],
)
def test_a_reset_is_found_behind_other_words_and_marks(text, seconds):
    assert reset(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "Se ha alcanzado el límite semanal. Vuelve a intentarlo el 8 jul 2026, 2:40 p. m.",
        "Hai raggiunto il limite di utilizzo. Riprova l'8 lug 2026, 14:40.",
        "Вы достигли лимита. Повторите попытку 8 июл. 2026 г., 14:40.",
        "Лимит исчерпан. Попробуйте снова 8 июля в 14:40.",
        "使用量の上限に達しました。2026年7月8日 14:40 にもう一度お試しください。",
    ],
)
def test_a_limit_and_its_reset_are_read_in_other_languages(text):
    assert kind(text) == "quota"
    assert reset(text) == 2 * 86400 + 2400


def test_headers_count_as_a_runtime_dumps_them():
    dump = (
        "{\n  name: 'x',\n  'x-ratelimit-remaining': '0',\n  'x-ratelimit-reset': '1783342800'\n}"
    )
    assert reset(f"##[error]API Rate Limit Exceeded\n{dump}") == 3600


@pytest.mark.parametrize(
    "line",
    [
        "If you see **Error 429 - Too Many Requests**: raise the limit in the console.",
        "You have exceeded your allowance. We have automatically switched you to a smaller model.",
        'When I send it, the API says {"error": {"code": 429, "message": "slow"}} each time.',
        "Rate limit errors (too many requests) are caused by a burst, and pass.",
        "Fix: Rate Limit Exceeded in three steps",
        "rate_limit_exceeded: 429,",
        "static isInstance(error: unknown): error is RateLimitError {",
        "Overloaded, ParamSpecType, ProperType,",
    ],
)
def test_advice_and_code_are_no_failures(line):
    assert kind(line) is None


@pytest.mark.parametrize(
    "text",
    [
        "- **Message when it tries again**: `Rate limit reached. Waiting 7s before the next try` now",
        "1. **Judge**: rate limit reached, try again in 5 minutes",
        "- [x] 429 Too Many Requests: retried after 5s",
        "The service answers in plain text. For example:\n\nQuota exceeded. Please try after 20 seconds.",
        "Users see messages such as:\nRate limit exceeded. Try again in 5 seconds.",
        '{"code": 200, "msg": "Operation successful", "data": {"nextResetTime": 1783350000}}',
        '{"success": true, "message": "3 requests left", "code": "quota", "reset_in": 60}',
        "The service returned 429 twice, but the client recovered and all 500 calls completed.",
        "12:00:01 WARN  rate limited, backing off 4s\n12:00:06 INFO  resumed, 37 of 40 done",
        "Error 429 is listed in section 4 of the specification.",
        "Speed limit reached, next reset at 18:00.",
        '"rateLimit": {"message": "Too many requests, please try again later.", "windowMs": 60000}',
        "> | Code | Meaning |\n> |---|---|\n> | 529 | Overloaded. |",
        "2. **A task that a limit ends**: the program shows `Acme\nusage limit reached.` and stops",
        "428: except TooManyRequests:\n429: raise RateLimitError",
    ],
)
def test_lists_examples_and_good_news_are_no_failures(text):
    assert kind(text) is None


def test_what_a_tool_answered_ends_where_the_program_speaks_again():
    banner = "  ⎿  You've hit your session limit · resets 6:30pm (Europe/Berlin)"
    assert kind(f"⏺ Read(notes.md)\n{banner}") is None
    assert kind(f"⏺ Read(notes.md)\n  ⎿  Read 3 lines\n\n{banner}") == "quota"


@pytest.mark.parametrize(
    "text",
    [
        'http 429 Too Many Requests: Some("{\\"error\\":{\\"type\\":\\"usage_limit_reached\\",\\"resets_in_seconds\\":90}}")',
        "[lane/one] run end: id=x isError=true error=⚠️ API rate limit reached. rawError=You have hit your usage limit (go plan). Try again in ~90 s.",
        "Error: Gave up after 1 attempt: Provider requested 90000ms wait, that exceeds the most. Original error: 429",
        "09:00:01 app WARNING call failed. Info: {'id': 'x7'}, Exception: Error calling m (RESOURCE_EXHAUSTED): 429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'details': [{'retryDelay': '90s'}]}}.",
    ],
)
def test_the_body_that_is_an_error_tells_the_reset(text):
    assert reset(text) == 90


def test_a_wrapped_time_is_read_inside_a_body_and_a_quotation():
    said = "You've hit your usage limit. Come back or try again in 5 days 22 hours 11\nminutes."
    seconds = 5 * 86400 + 22 * 3600 + 11 * 60
    assert reset(f"acme.Error: {json.dumps({'error': {'message': said, 'code': 429}})}") == seconds
    assert reset("> " + said.replace("\n", "\n> ")) == seconds


def test_a_reset_stands_in_a_problem_and_behind_a_logger():
    problem = {"title": "Quota used up", "status": 429, "reset_at": "2026-07-06T13:00:00Z"}
    assert reset(f"HTTP/1.1 429 Too Many Requests\n\n{json.dumps(problem)}") == 3600
    assert (
        reset("ERRO[0007] list: 403 API rate limit exceeded for me. [rate reset in 7m16s]") == 436
    )


def test_what_a_test_runner_lists_is_no_failure():
    listing = "PASS src/retry.test.ts\n  ✓ 429 Too Many Requests is retried (2 ms)"
    assert kind(listing) is None


def test_the_last_word_is_on_stderr_if_stdout_only_says_that_it_tries_again():
    notice = "● The answer was interrupted due to a server error. Retrying..."
    said = "Could not connect to the model provider at localhost.\n\nDuration   5s"
    assert kind(notice, said, exit_code=1) == "network"


def test_an_answer_is_not_whole_if_stderr_complains_about_it():
    assert (
        kind("Half an ans", "[ERROR] Model stream ended without a finish reason.", exit_code=0)
        == "server"
    )
    assert kind("An answer.", "[ERROR] 429 Too Many Requests", exit_code=0) is None


def test_one_lower_case_word_is_all_that_a_dropped_connection_may_leave():
    assert kind("", "terminated", exit_code=1) == "network"
    assert kind("", "Terminated", exit_code=143) == "unknown"


def test_the_transcript_that_codex_keeps_is_read_like_its_events():
    error = {"type": "error", "message": "You've hit your usage limit. Try again at 3:10 PM."}
    done = {"type": "task_complete"}
    told = [json.dumps({"type": "event_msg", "payload": one}) for one in (error, done)]
    assert kind(told[0]) == "quota"
    assert reset(told[0]) == 4200
    assert kind("\n".join(told)) is None


def test_a_notice_whose_error_comes_second_is_progress():
    text = "Attempt 4 failed. Retrying with backoff... Error: exception TypeError: fetch failed"
    assert outcome("", text).is_progress
    assert kind("", text, exit_code=1) == "network"


@pytest.mark.parametrize(
    ("status", "expected"),
    [(403, "auth"), (429, "rate_limit"), (503, "server"), (400, "client"), (404, "client")],
)
def test_a_status_knows_better_than_a_code_that_is_said_beside_every_status(status, expected):
    data = {"message": "not for you", "statusCode": status}
    body = {"error": {"message": "not for you", "type": "invalid_request_error"}}
    event = {
        "type": "error",
        "sessionID": "s",
        "error": {"name": "APIError", "data": {**data, "responseBody": json.dumps(body)}},
    }
    assert kind(json.dumps(event), exit_code=1) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("502 <html> <head><title>502</title></head> <body><h1>502</h1></body> </html>", "server"),
        ("models/acme-2 is not found for API version v1", "client"),
        ("No response was returned. Send your message again.", "bad_answer"),
        ("The model returned an empty response, no text at all.", "bad_answer"),
        ("Last error: could not finalize the stream: missing finish_reason for choice 0", "server"),
    ],
)
def test_what_real_programs_say_under_faults_has_its_kind(message, expected):
    event = {"type": "auto_retry_end", "success": False, "finalError": message}
    assert kind(json.dumps(event), exit_code=1) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Asking once.\nNetwork Error:\n<Response [429]>\nNetwork Error:\n<Response [429]>", "rate_limit"),
        ("Streaming response failed: [503] The request queue is full.", "overloaded"),
        ("[run error]: error, status code: 429, status: 429 Too Many Requests, message: 余额不足", "billing"),
        ('HTTP 401: {"type":"error","error":{"type":"X","message":"Insufficient balance."}}', "billing"),
        ("acme-image: Quota exceeded for metric: acme.googleapis.com/x, limit: 0, model: m Please retry in 5s.", "billing"),
        ("acme.BadRequestError: Error code: 400 - {'error': {'code': 'data_inspection_failed', 'message': 'x y'}}", "content_policy"),
        ("acme.ApiError: status_code: 403, body: <!doctype html><title>403</title>403 Forbidden", "auth"),
        ('- [error] Calling Acme: {"error":{"code":503,"message":"high demand"}}\n- [error] No data was read', "overloaded"),
        ("Alcanzaste tu límite de uso. Inténtalo de nuevo más tarde.", "quota"),
        ("Error: The agent stopped due to max_tokens limit", "context_length"),
        ("Error: No messages returned\n    at run (main.js:5:7)", None),
    ],
)  # fmt: skip
def test_rounds_of_2026_are_read(text, expected):
    assert kind(text) == expected


def test_a_stated_wait_is_kept_whatever_the_failure_is():
    told = outcome(
        "Stream error after retries: 账号队列超时: 所有可用账号暂时不可用，请 78 秒后重试"
    )
    assert told.reset is not None
    assert told.reset.seconds == 78


def test_the_banner_below_folded_tools_is_the_programs_own():
    banner = "  ⎿  You've hit your limit · resets 5:30pm (UTC)\n\n✻ Sautéed for 4m 13s\n"
    assert kind(f"⏺ Read 2 files (ctrl+o to expand)\n{banner}") == "quota"
    assert kind(f"⏺ Read(limits.md)\n{banner}") is None


def test_a_list_of_tasks_below_a_banner_answers_nothing():
    tasks = "  8 tasks (7 done, 1 in progress, 0 open)\n" + "  ✔ Read the plan of the rebuild\n" * 7
    assert kind(f"  ⎿  You've hit your limit · resets 8pm (UTC)\n\n{tasks}") == "quota"


def test_objects_are_read_that_somebody_shortened():
    event = (
        '{"type":"result","is_error":true,"result":"You\'ve hit your session limit · resets 9pm",…}'
    )
    assert kind(f'{{"type":"system",...}}\n{event}') == "quota"


def test_a_report_of_several_runs_is_unwrapped():
    run = "### lane {0}\n\n```\nAction failed with error: API Error: 529 Overloaded. Try again.\n```\n\n"
    assert kind(run.format(1) + run.format(2)) == "overloaded"


@pytest.mark.parametrize(
    ("text", "exit_code", "expected"),
    [
        # A wrapper that says which exit code its agent failed with has not gone on.
        ("Weekly limit reached ∙ resets 5am\n❌ The agent failed with exit code 0", 0, "quota"),
        ("Weekly limit reached ∙ resets 5am\nThe agent ended with exit code 0", 0, None),
        # An event of an unknown program below a line of its own.
        (('[acme] the answer took too long\n{"event":"end","end":{"status":"ERROR","error":'
          '"(code 429): Acme quota reached. Resets in 2h."}}'), 0, "quota"),
        ("You have exceeded your monthly included credits for Acme. Get more.", None, "quota"),
        ("**Model:** acme\n\n**Error**\n```\n429 余额不足,请充值。\n```", None, "billing"),
        ("**Last lines:** provider=acme/large reason=rate_limit retry_after=30", None, "rate_limit"),
        ("Error: No authentication information found.", 1, "auth"),
        ("from acme.client import Client, Retry as R\n# Error: 429 Too Many Requests", None, None),
        ('hub.note("job-7", "fail", {\n    "error": "code 429: quota reached. Resets in 1h."\n})', None, None),
    ],
)  # fmt: skip
def test_the_last_word_of_a_wrapper_is_read_and_source_is_not(text, exit_code, expected):
    assert kind(text, exit_code=exit_code) == expected


def test_a_marked_error_above_a_list_of_tasks_is_the_last_word():
    tasks = (
        " Todo  1/3 completed (ctrl+t to toggle)\n\n"
        " ✓ Read the plan: the pages that a user sees first, and those that he sees last,\n"
        "   with all that they show\n ☐ Write down what is missing in the plan of the pages\n"
    )
    said = outcome(f"✕ [API Error: Your quota will reset after 2h30m.]\n\n{tasks}")
    assert said.failure is not None
    assert said.reset.seconds == 9000


@pytest.mark.parametrize(
    ("below", "seconds"),
    [
        ("X-RateLimit-Reset:     1783350000000 (2026-07-06T15:00:00Z)", 10_800),
        ("[WARN] account=a cooldown until=2026-07-06T13:00:00Z tries=2", 3_600),
    ],
)
def test_a_reset_under_a_key_below_an_error_belongs_to_it(below, seconds):
    told = outcome(f"Error: 429 rate limit exceeded\n{below}")
    assert told.reset is not None
    assert told.reset.seconds == seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The corner of the program's own word stands in the column of the tool's answer.
        (("● Write(pages/users.js)\n  ⎿  Wrote 9 lines to pages/users.js\n     class Users {\n"
          "         list() {\n     … +5 lines (ctrl+r to expand)\n"
          "  ⎿  Claude usage limit reached. Your limit will reset at 5pm (UTC).\n"), ("quota", 18_000)),
        # A list of strings, as a program prints the last lines of its log.
        (('  "12:00:01 [error] RESOURCE_EXHAUSTED (code 429): try again in 30s",\n'
          '  "12:00:02 [info] Retrying in 1s. RESOURCE_EXHAUSTED (code 429)",\n'
          '  "12:00:04 [error] RESOURCE_EXHAUSTED (code 429): try again in 40s",'), ("rate_limit", 40)),
        ('{"step":"send","result":"error","reason":"rate_limit"}', ("rate_limit", None)),
        ('{"step":"send","result":"the error was a rate_limit, and is fixed"}', (None, None)),
        # A server that answers 500 tells what another one answered.
        (('{"level":"error","msg":"no quota: error, status code: 429, message: You exceeded your '
          'current quota, check your billing details","status_code":500,"url":"/run"}'), ("billing", None)),
        ('[error] Got {:ok, %{status: 429, headers: %{"retry-after" => ["4"]}, body: "slow down"}}', ("rate_limit", 4)),
        (('ERROR: POST /chat\n\nCaused by:\n    0: 403 Forbidden: {"message":"You\'ve reached your daily limit"}\n'
         "    1: Invalid status code: 403"), ("quota", None)),
        ("API Error: Request rejected (429) · Due to suspicious activity, try again in 1m 4s", ("rate_limit", 64)),
        ("API Error: Request rejected (403) · Due to suspicious activity, try again later", ("content_policy", None)),
        (("say: >-\n  Sorry, that failed: Error code: 429 -\n  {'error': {'message': 'You exceeded your\n"
         "  quota', 'type': 'insufficient_quota', 'param': None}}"), ("billing", None)),
    ],
)  # fmt: skip
def test_rounds_of_november_are_read(text, expected):
    assert (kind(text), reset(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[VERBOSE] queue: Throttled: another process is running already (1 process)", (None, None)),
        (("# T8: an event without a status is detected.\nevent='{\"is_error\":true,\"result\":\"Overloaded\"}'\n"
          'assert_eq "T8: overloaded detected as rate-limit" "0" "$rc"'), (None, None)),
        (("7|claude|failed|claude failed: You've hit your limit · resets 3pm (UTC)|2026-07-06T09:00:00Z\n"
          "8|claude|failed|claude failed: You've hit your limit · resets 5pm (UTC)|2026-07-06T12:00:00Z"), ("quota", 18_000)),
        ("Error: Rate limit reached for m. Please try a\\\ngain in 30s. Need more?", ("rate_limit", 30)),
        ("acme.APIError: APIError: AcmeException - [Errno -2] Name or service not known", ("network", None)),
    ],
)  # fmt: skip
def test_the_last_rounds_of_november_are_read(text, expected):
    assert (kind(text), reset(text)) == expected

"""What programs print around their errors: broken answers, advice, traces, false successes."""

from __future__ import annotations

import json

import pytest

from .test_reader import NOW, kind, outcome


def success(text, written):
    event = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return json.dumps([{**event, "usage": {"input_tokens": 0, "output_tokens": written}}])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[API Error: 401 Incorrect API key provided: x]", "auth"),
        ("[API Error: 402 Insufficient credits on this account]", "billing"),
        ("[API Error: terminated (cause: other side closed)]", "network"),
        ("The first step is [API Error: The server is overloaded, come back later]", "overloaded"),
        ("API Error: Rate limit reached", "rate_limit"),
        ("[API Error: something that nobody has seen]", "unknown"),
    ],
)
def test_an_apis_error_as_the_answer_of_a_success_is_a_failure(text, expected):
    assert kind(success(text, written=0), agent="qwen", exit_code=0) == expected


def test_a_model_that_talks_about_an_apis_error_has_answered():
    told = "Your log ends with [API Error: 401 Incorrect API key provided: x]"
    assert kind(success(told, written=20), agent="qwen", exit_code=0) is None
    asked = "API Error: 429 is what the service says when you ask too often."
    assert kind(success(asked, written=20), agent="claude", exit_code=0) is None


def test_a_list_of_advice_below_a_banner_does_not_make_it_part_of_an_answer():
    text = """
Tokens: 900 sent, 0 received.

Model acme/large has hit a token limit!
Token counts below are approximate.

Input tokens: ~700 of 0 -- possibly exhausted context window!

To reduce output tokens:
- Ask for less in one request.
- Break the work into smaller files.

To reduce input tokens:
- Use /drop to take files out of the chat that nobody needs any more.
- Use /clear to begin again without what was said so far.
"""
    assert kind(text, agent="aider", exit_code=0) == "context_length"


def test_a_list_of_work_below_a_banner_makes_it_part_of_an_answer():
    text = """You've hit your limit · resets 9pm

is what the screen showed. Done since then:
- Added a test for the parser of dates that covers every zone
- Fixed the reader of configuration files so that it closes them
"""
    assert kind(text, agent="claude", exit_code=0) is None


BROKEN_OFF = "The first step is to acme.APIConnectionError: APIConnectionError: AcmeException - "


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("peer closed \nconnection without sending the whole body (incomplete chunked read)", "network"),
        ("The server is \ncurrently overloaded with other requests.", "overloaded"),
        ("Rate limit reached, please try again in 90s.", "rate_limit"),
    ],
)  # fmt: skip
def test_an_error_behind_half_an_answer_on_the_same_line_is_a_failure(words, expected):
    text = f"I will do it in three steps.\n{BROKEN_OFF}{words}\n"
    assert kind(text, agent="aider", exit_code=0) == expected
    assert outcome(f"{text}Retrying in 4.0 seconds...\n", agent="aider").is_progress


def test_the_error_above_knows_better_than_the_sentence_that_explains_it():
    lost = (
        "acme.InternalServerError: InternalServerError: OpenAIException - Connection \nerror.\n"
        "The API provider's servers are down or overloaded.\n"
    )
    assert kind(lost, agent="aider", exit_code=0) == "network"
    broken = lost.replace("Connection \nerror.", "The server had an error, sorry.")
    assert kind(broken, agent="aider", exit_code=0) == "server"
    alone = "The API provider's servers are down or overloaded.\n"
    assert kind(alone, agent="aider", exit_code=0) == "overloaded"


def test_the_wait_before_the_last_try_is_not_when_the_limit_resets():
    error = (
        "acme.RateLimitError: RateLimitError: AcmeException - The usage limit has been reached\n"
    )
    again = "Retrying in 16.0 seconds...\n"
    found = outcome(error + again + error, agent="aider", exit_code=0)
    assert found.failure is not None
    assert found.failure.kind in ("quota", "rate_limit")
    assert found.reset is None


ATTEMPT = """\
Attempt {n} failed with status 503. Retrying with backoff... _ApiError: {{"error":{{"code":503,"message":"The service is away.","status":"UNAVAILABLE"}}}}
    at throwUnlessOk (file:///opt/acme/chunk-A.js:10:5)
    at async Turn.run (file:///opt/acme/with/a/long/path/of/many/words/chunk-B.js:20:7) {{
  status: 503
}}
"""


def test_a_notice_with_a_stack_trace_below_it_is_a_notice():
    text = ATTEMPT.format(n=1) + ATTEMPT.format(n=2)
    assert outcome("", text, agent="gemini").is_progress
    assert kind("", text, agent="gemini", exit_code=143) == "server"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("provider.api_error: 400 The value of this field is not known", "client"),
        ("provider.api_error: 401 Who are you", "auth"),
        ("provider.api_error: 429 Come back later", "rate_limit"),
        ("provider.api_error: 500 Something broke", "server"),
    ],
)
def test_a_status_knows_better_than_a_code_that_is_said_of_every_error(words, expected):
    assert kind("", f"error: failed to run prompt: {words}\n", exit_code=1) == expected


@pytest.mark.parametrize(
    "words",
    [
        "Invalid value: 'loud'. Supported values are: 'quiet' and 'mute'.",
        "Unsupported parameter: 'volume' is not supported with this model. Use 'level' instead.",
        "Unrecognized request argument supplied: volume",
        "Missing required parameter: 'messages[2].role'.",
        "Invalid type for 'volume': expected a number, but got a string instead.",
        "Invalid schema for function 'play': it must be of type object.",
        "messages.3.content: Field required",
        "tools.0.input_schema: Extra inputs are not permitted",
        "messages.1: `tool_use` ids were found without `tool_result` blocks right after: toolu_7",
        "messages: roles must alternate between the two sides",
        "No tool output found for function call call_7.",
    ],
)
def test_a_request_that_is_at_fault_is_known_without_its_status(words):
    assert kind("", f"Error: {words}\n", exit_code=1) == "client"
    assert kind(f"I told them: {words}\nThen I fixed it.\n", exit_code=0) is None


def test_the_reset_that_only_the_retried_call_states_is_the_limits():
    body = {"message": "The usage limit has been reached", "resets_at": int(NOW) + 5400}
    retried = {"statusCode": 429, "errorMessage": json.dumps(body), "retryDelayMs": 4000}
    ended = {"errorType": "rate_limit", "message": "429 The usage limit has been reached"}
    events = [
        {"type": "model.call_failure", "data": retried},
        {"type": "session.error", "data": ended},
    ]
    found = outcome("\n".join(map(json.dumps, events)), agent="copilot", exit_code=1)
    assert found.reset is not None
    assert found.reset.seconds == 5400
    events.insert(1, {"type": "assistant.message", "data": {"content": "going on"}})
    later = outcome("\n".join(map(json.dumps, events)), agent="copilot", exit_code=1)
    assert later.reset is None


def test_what_a_user_types_below_a_banner_answers_nothing():
    rule = "─" * 20
    banner = (
        "  ⎿  Session limit reached ∙ resets 9:30pm\n     /upgrade to increase your usage limit."
    )
    typed = (
        "> go on please, and then\n  look once more at the parser, because the last change broke it"
    )
    assert kind(f"{banner}\n\n{rule}\n{typed}\n{rule}\n") == "quota"
    assert kind(f"{banner}\n\n{typed.removeprefix('> ')}\n") is None


def test_a_limit_in_a_body_takes_the_time_of_the_banner_above_it():
    body = '{"type": "error", "error": {"type": "rate_limit_error", "message": "Rate limited."}}'
    found = outcome(f"You've hit your limit · resets 2:10pm (UTC)\n{body}")
    assert found.failure.kind.is_limit
    assert found.reset is not None
    assert found.reset.source == "resets 2:10pm (UTC)"


def test_a_date_and_its_time_on_the_next_line_are_one_time():
    said = "API Error: 429 · Usage limit reached. Your limit will reset at 2026-07-06\n  22:19:41"
    assert outcome(said).reset == outcome(said.replace("\n ", "")).reset


def test_a_mere_code_is_explained_by_the_line_above_it():
    text = "Error: Incorrect API key provided\nerror: api_error"
    assert kind(text, exit_code=1) == "auth"
    assert kind("session started\nerror: api_error", exit_code=1) == "server"


def test_what_a_function_made_of_messages_is_shown():
    rows = "Rate limit exceeded. Available at 9pm -> is_limit=true\nnothing -> is_limit=false"
    assert kind(rows, exit_code=0) is None


def test_a_model_that_hit_its_rate_limit_is_limited():
    assert kind("**The Core model hit its monthly rate limit. Wait for it to reset.**") is not None
    assert kind("The model hit its rate limit twice in the test; both were retried.") is None

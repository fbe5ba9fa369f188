"""Documents about limits are no failures; errors in odd layouts are."""

from __future__ import annotations

import pytest

from .test_reader import kind, outcome

STATUSES = """What the service answers:

402 Payment Required
429 Too Many Requests
503 Service Unavailable
"""

ADVICE = """## Handling rate limits

A `429` means that your client asked more often than its plan allows. The response has these headers:

| header | meaning |
|---|---|
| `retry-after` | the number of seconds to wait |
| `x-ratelimit-reset` | the time at which the window is over |

```json
{"error": {"type": "rate_limit_error", "message": "Rate limit exceeded, try again in 20 seconds"}}
```

We recommend to read the header, to wait that long, and then to try the request again. If there is no
header, wait twice as long each time. See the tests in `client.test.ts` for an example with both.
"""


@pytest.mark.parametrize("text", [STATUSES, ADVICE])
def test_a_document_that_describes_errors_is_no_failure(text):
    assert kind(text, exit_code=0) is None


def test_one_status_with_its_headers_and_body_is_a_failure():
    text = """Status: 429
Headers: retry-after: 30
Body: {"error": {"type": "rate_limit_error", "message": "Rate limit exceeded"}}
"""
    assert kind(text, exit_code=0) == "rate_limit"


def test_an_error_that_names_its_status_code_is_not_a_definition():
    text = "Response status code does not indicate success: 429 (Too Many Requests).\n"
    assert kind(text, exit_code=1) == "rate_limit"


def test_a_number_in_front_of_an_error_makes_no_title_of_it():
    text = "2. API Error: 429 Too Many Requests\n3. API Error: 429 Too Many Requests\n"
    assert kind(text, exit_code=1) == "rate_limit"


def test_an_instruction_to_wait_and_retry_is_no_failure():
    assert kind("Wait 20 seconds and retry on 429 responses of the gateway.\n", exit_code=0) is None
    assert kind("Wait 20 seconds and try again.\n", exit_code=0) == "rate_limit"


def test_an_error_that_is_split_at_its_colons_is_read_as_one():
    text = """🚨 Server error
  → Error starting the stream
    → Status code
      → 429, message
        → Rate limit reached for acme-large on tokens per min (TPM)
          → Limit 30000, Used 23193, Requested 15447. Please try again in 17.28s.
"""
    found = outcome(text, exit_code=1)
    assert str(found.failure.kind) == "rate_limit"
    assert found.reset.seconds == pytest.approx(17.28)
    larger = text.replace("Used 23193, Requested 15447", "Requested 183784")
    larger = larger.replace("Rate limit reached", "Request too large")
    assert kind(larger.replace(" Please try again in 17.28s.", ""), exit_code=1) == "context_length"


def test_arrows_of_tools_are_not_joined():
    text = "I looked at it:\n  → Read limits.py\n  → Read errors.py\n"
    assert kind(text, exit_code=0) is None


def test_a_status_that_says_nothing_is_explained_by_the_limit_above_it():
    text = """An error occurred while processing your request.

Details: Maximum com.acme.streaming.Generate reached for this month. (Status Code: 400)

Status Code: 400

Request ID: 7d8b8c3b
"""
    assert kind(text, exit_code=1) == "quota"
    assert kind("Status Code: 400\n\nRequest ID: 7d8b8c3b\n", exit_code=1) == "client"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Budget exhausted: 3 of 3 requests used. Raise the limit with --max-requests.", "unknown"),
        ('  File "agent.py", line 7, in run\n    self._throttle(call)\nIndexError: 3', "unknown"),
        ("self._throttle_calls(7)\nIndexError: list index out of range", "unknown"),
        ("Service invoked too many times for one day: mail.", "rate_limit"),
        ("  Token limit exceeded before adding the conversation", "context_length"),
        ("Daily token limit exceeded", "quota"),
    ],
)
def test_a_guess_knows_limits_of_the_program_and_places_in_code(text, expected):
    assert kind(text, exit_code=1) == expected


@pytest.mark.parametrize("exit_code", [0, None])
def test_a_block_that_is_indented_in_a_document_is_quoted(exit_code):
    banner = "You've hit your session limit · resets 10:30pm (Europe/Berlin)"
    text = (
        f"# Notes on the banner\n\nWhat the CLI prints when the window is used up:\n\n    {banner}\n\n"
        "The parser in `limits.py` reads the time and the zone. If there is no zone, the time is the "
        "host's. We also handle the older wording, and the tests cover both of them; see the commit.\n"
    )
    assert kind(text, exit_code=exit_code) is None
    assert kind(f"the run failed with\n\n    {banner}\n", exit_code=exit_code) == "quota"


def test_an_error_in_a_block_under_a_heading_alone_is_said():
    error = "Error: Individual quota reached. Resets in 37h50m21s."
    assert kind(f"### acme, no answer\n\n```\n{error}\n```\n") == "quota"
    assert kind(f'### acme\n\n**Error:**\n```json\n{{"error": "{error}"}}\n```') == "quota"
    report = f'**Details**\n\nModel: acme\nStatus: N/A\n\n**Error Output**\n```\n"{error}"\n'
    assert kind(report) == kind(report + "```\n\n### Cause") == "quota"
    assert kind(f"### acme\n\nWhat users see at night:\n\n```\n{error}\n```\n") is None


def test_a_server_error_that_says_when_a_limit_resets_is_that_limit():
    assert kind("Error: Internal error: 5-hour limit reached, resets in 2h") == "quota"
    assert kind("Error: Internal error, retry in 20s") == "server"


def test_an_error_that_stands_where_the_answer_should_be_is_read():
    text = '{"update": {"content": {"text": "Error: rate limit reached, try again in 2h"}}}'
    assert kind(text) == "rate_limit"
    assert kind(text.replace("Error: rate", "The rate")) is None

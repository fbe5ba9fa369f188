"""Which of several things that a run said is the one it ended with."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.pattern_packs import Packs, pack_from
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
BANNER = "You've hit your session limit · resets 9pm (UTC)"
HEARD = ("quota", 9 * 3600.0)


def read(stdout="", stderr="", *, packs=PACKS, **kwargs):
    """Kind and seconds to the reset."""
    found = read_output(stdout, stderr, packs=packs, now=NOW, zone=ZoneInfo("UTC"), **kwargs)
    kind = None if found.failure is None else str(found.failure.kind)
    return kind, None if found.reset is None else found.reset.seconds


def test_headers_speak_for_the_response_they_belong_to():
    early = "429 Too Many Requests\nretry-after: 3600\n\nlater work\n"
    assert read(f"{early}API Error: 401 invalid api key", exit_code=1) == ("auth", None)
    shown = "⏺ Read(docs/api.md)\n  ⎿  HTTP/1.1 429\n     retry-after: 120\n\n"
    assert read(shown + BANNER) == HEARD
    assert read("HTTP/1.1 429 Too Many Requests\nretry-after: 30") == ("rate_limit", 30.0)
    body = '{"error":{"type":"rate_limit_error","message":"Slow down, try again in 5s"}}'
    assert read(f"{shown}Error response:\n{body}") == ("rate_limit", 5.0)
    assert read(f"HTTP/1.1 429\nretry-after: 30\n\n{body}") == ("rate_limit", 30.0)


def test_headers_of_a_used_up_window_in_a_block_of_code_are_shown():
    headers = "anthropic-ratelimit-unified-status: rejected\nretry-after: 60"
    assert read(headers) == ("quota", 60.0)
    assert read(f"The fixture:\n```\n{headers}\n```\nI read it.") == (None, None)


def test_a_banner_below_a_body_is_the_end_of_a_long_run_too():
    body = '{"error":{"type":"authentication_error","message":"invalid x-api-key"}}'
    work = "one more line of work\n" * 6000
    assert read(f"{work}{body}\n{BANNER}", exit_code=1) == HEARD
    assert read(f"{work}{BANNER}\n{body}", exit_code=1) == ("auth", None)


@pytest.mark.parametrize("exit_code", [None, 1])
def test_a_banner_below_a_body_is_the_end(exit_code):
    body = '{"error":{"type":"authentication_error","message":"invalid x-api-key"}}'
    assert read(f"{body}\n{BANNER}", exit_code=exit_code) == HEARD
    assert read(f"It answers:\n```json\n{body}\n```\n\n{BANNER}", exit_code=1) == HEARD


def test_a_run_that_ended_well_was_not_ended_by_a_complaint_on_stderr():
    done = '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'
    complaint = '{"type":"error","message":"Rate limit reached, try again in 5s"}'
    assert read(done, complaint, exit_code=0) == (None, None)
    assert read(done, complaint, exit_code=1) == ("rate_limit", 5.0)


def test_a_failed_exit_is_explained_by_words_even_after_a_turn_that_was_completed():
    said = "ERROR: You've hit your usage limit. Try again in 3 hours."
    more = '\n{"type":"item.completed","item":{"type":"agent_message"}}'
    for done in ('{"type":"turn.completed"}', '{"type":"turn.completed"}' + more):
        assert read(done, said, exit_code=1) == ("quota", 3 * 3600.0)


def test_a_record_that_follows_an_error_shows_that_it_was_survived():
    error = '{"level":"error","msg":"Rate limit exceeded, try again in 5s"}'
    assert read(error) == ("rate_limit", 5.0)
    assert read(error + '\n{"level":"info","msg":"task completed"}') == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type":"retry.failed","message":"Rate limit exceeded, try again in 5m"}', ("rate_limit", 300.0)),
        ('{"event":"request_failed","level":"warning"}\n{"event":"request_ok"}', (None, None)),
        ('{"type":"test_failed","message":"expected: Rate limit exceeded"}', (None, None)),
        ('{"type":"result","subtype":"error_max_turns","is_error":false}', (None, None)),
        ('{"status":"no errors","notes":["Rate limit exceeded, try again in 5s"]}', (None, None)),
        ('{"outcome":"0 failed","notes":["Rate limit exceeded, try again in 5s"]}', (None, None)),
        ("I handled the error: Rate limit exceeded, try again in 5s", (None, None)),
        ("Why it failed: the usage limit was reached.", (None, None)),
        ("Error: expected 'Rate limit exceeded' but got 'ok'", (None, None)),
        ("API Error: 429 rate limit, retry after 2s\nYou've hit your weekly limit", ("quota", None)),
        ("You've used 90% of your weekly limit · resets Jul 10 at 9am\nAPI Error: Rate limit exceeded", ("rate_limit", None)),
        ("Error: rate limit exceeded. Try again in 3,600 seconds.", ("rate_limit", 3600.0)),
        ("500: AcmeException - Error code: 404 - {'error': {'message': 'gone'}}", ("client", None)),
        ("Error: response status was 402: quota exceeded", ("billing", None)),
    ],
)  # fmt: skip
def test_what_looks_like_an_end_is_weighed(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Here is the code:\n```python\nprint(1)\nAPI Error: 429 Slow down, try again in 30s", ("rate_limit", 30.0)),
        ('Here:\n```python\n{"type":"result","is_error":true,"result":"Weekly limit reached"}', ("quota", None)),
        (f"+ echo start\nstart\n+ claude -p go\n{BANNER}", HEARD),
        (f"/*.py\n{BANNER}", HEARD),
        ("--- stderr ---\n  Error: 429 Too Many Requests", ("rate_limit", None)),
        ("Import failed: 429 Too Many Requests", ("rate_limit", None)),
        ("Private key missing: 401 Unauthorized", ("auth", None)),
        ("ci: Error: 429 Too many requests", ("rate_limit", None)),
        ("429: rate limit exceeded", ("rate_limit", None)),
        ("Because of high demand, rate limit exceeded. Try again in 5s", ("rate_limit", 5.0)),
    ],
)  # fmt: skip
def test_what_a_failed_run_said_last_is_not_taken_for_something_shown(text, expected):
    assert read(text, exit_code=1) == expected


def test_users_packs_are_asked_first_whatever_the_program():
    entry = {
        "id": "mine",
        "match": "you've hit your session limit",
        "kind": "billing",
        "seen": "me",
    }
    mine = pack_from({"version": 1, "entry": [entry]}, name="mine")
    packs = Packs(packs=(mine, *PACKS.packs))
    assert read(BANNER, packs=packs, agent="claude")[0] == "billing"

"""Banners in logs and in a terminal program's frame."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output.timeline import logged
from mulligan.config.packs import find_packs

from .test_reader import kind

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
BANNER = "You've hit your weekly limit · resets 9pm"
WANTED = ("quota", 7 * 3600.0)


def read(text):
    """Kind and seconds to the reset."""
    found = read_output(text, packs=PACKS, now=NOW, zone=ZoneInfo("Europe/Berlin"), agent="claude")
    kind = None if found.failure is None else str(found.failure.kind)
    return kind, None if found.reset is None else found.reset.seconds


@pytest.mark.parametrize(
    "record",
    [
        {"level": "error", "msg": BANNER},
        {"level": 50, "time": 1783339200000, "msg": BANNER},
        {"timestamp": "2026-07-06T12:00:00Z", "severity": "ERROR", "message": BANNER},
        {"level": "error", "msg": "the run failed", "err": BANNER},
    ],
)
def test_a_record_of_a_log_is_read_as_a_line_of_it(record):
    assert read(json.dumps(record)) == WANTED


def test_a_record_that_others_follow_was_survived():
    later = {"level": "info", "msg": "went on with the next part of the work and finished it well"}
    text = f"{json.dumps({'level': 'warn', 'msg': BANNER})}\n" + f"{json.dumps(later)}\n" * 3
    assert read(text) == (None, None)


@pytest.mark.parametrize(
    "data",
    [None, [], {"msg": BANNER}, {"level": "error"}, {"level": 7, "msg": "x"}, {"level": "error", "type": "x", "msg": "y"}],
)  # fmt: skip
def test_other_data_is_no_record_of_a_log(data):
    assert logged(data) == []


@pytest.mark.parametrize(
    "stamp", ["2026-07-06T12:00:01.1234567Z ", "Jul 06 12:00:01 host agent[312]: "]
)
def test_the_next_lines_stamp_is_no_part_of_a_time(stamp):
    lines = ["Run the agent", BANNER, "##[error]Process completed with exit code 1."]
    assert read("\n".join(stamp + line for line in lines)) == WANTED


def test_a_line_of_a_log_below_a_banner_is_no_part_of_it():
    assert read(f"{BANNER}\n2026-07-05 12:00:02 INFO shutting down") == WANTED


def test_a_date_that_a_terminal_wrapped_is_no_stamp():
    text = (
        "You have exceeded the 5-hour usage quota. It will reset at\n2026-07-06 23:00:00 +0800 CST."
    )
    assert read(text) == ("quota", 3 * 3600.0)


def test_what_a_spinner_left_in_its_line_is_overwritten():
    text = "\x1b[?25l⠋ Thinking…\r\x1b[2K⠙ Thinking…\r\x1b[2KYour quota will reset after 2h0m0s.\n"
    assert read(text) == ("quota", 7200.0)


def test_the_footer_of_a_terminal_program_is_no_answer():
    footer = "─" * 40 + "\n❯ \n" + "─" * 40 + "\n  ⏵⏵ accept edits on (shift+tab to cycle)"
    below = "\n\n✻ Worked for 2s\n\n" + footer + "   Context left until auto-compact: 8%"
    assert read(f"❯ go on\n  ⎿  {BANNER}{below}") == WANTED


def log(level, message):
    return json.dumps({"level": level, "msg": message}) + "\n"


UNRELATED = log("fatal", "the key db.url is not set")


@pytest.mark.parametrize(
    "text",
    [
        log("info", "rate limit exceeded for client 7") + UNRELATED,
        log("debug", "usage limit reached, resets in 3h") + log("error", "no such table"),
        log("error", "rate limit exceeded") + log("info", "second try went well") + UNRELATED,
    ],
)
def test_a_later_error_and_not_an_earlier_remark_ended_the_program(text):
    assert kind(text, exit_code=1) == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "Here is the mock.\n```js\n{ type: 'rate_limit_error', message: 'Rate limit exceeded' }\n```\n",
        'The mock:\n```json\n{"type": "overloaded_error", "message": "Overloaded"}\n```\n',
        "The log has:\n" + log("error", "rate limit exceeded") + "Mended.\n",
        "Ran it:\n{ error: { code: 'insufficient_quota', message: 'You exceeded your quota' } }\nGood.",
        "module.exports =\n{ status: 429, message: 'Too many requests' }\n",
    ],
)
@pytest.mark.parametrize("agent", ["aider", "gemini", "qwen"])
def test_what_an_answer_shows_is_no_failure_of_the_run(text, agent):
    assert kind(text, exit_code=0, agent=agent) is None


def test_an_answer_about_an_error_is_an_answer():
    said = "[API Error: 429] is what it prints, see [the code]"
    event = {"type": "result", "is_error": False, "result": said, "usage": {"output_tokens": 9}}
    assert kind(json.dumps(event), exit_code=0, agent="qwen") is None

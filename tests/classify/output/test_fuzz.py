"""Noise: whatever the bytes, an outcome; whatever the size, in proportion to it."""

from __future__ import annotations

import json
import textwrap
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output.reader import Outcome
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={})).packs
WORDS = (
    *("limit", "reached", "resets", "error:", "API Error:", "429", "quota", "exceeded", "{", "}"),
    *('{"type":', '"result"', '"error"', "[", "]", "\\", "\n", "\n\n", "try again in", "5 hours"),
    *(
        "You've hit your",
        "session",
        "9pm",
        "(UTC)",
        "⏺ Read(",
        "  ⎿ ",
        "```",
        "│",
        "\x1b[31m",
        "@@",
    ),
    *("1783350000", "Retry-After:", "usage", "the", "of", "retrying", "'", '"', "\ud800", "\x00"),
)


def read(stdout, stderr="", **known):
    return read_output(stdout, stderr, packs=PACKS, now=NOW, zone=UTC, **known)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.binary(max_size=100), st.sampled_from([None, 0, 1, 173, -9]))
def test_bytes_never_raise(stdout, stderr, exit_code):
    found = read(stdout, stderr, exit_code=exit_code)
    assert isinstance(found, Outcome)
    assert (found.failure is not None) or exit_code in (None, 0)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", "claude", "gemini", "x"])
)
def test_almost_banners_never_raise(words, agent):
    found = read(" ".join(words), agent=agent)
    assert len(found.message) <= 500


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "error", "message", "status", "result", "event", "data", "item"]
            )
            | st.sampled_from(
                ["retryDelay", "resetsAt", "retry_after", "rate_limit_info", "params"]
            ),
            inner
            | st.sampled_from(["error", "result", "assistant", "agent_event", "session.error"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(json_values, max_size=4))
def test_events_of_any_shape_never_raise(events):
    read("\n".join(json.dumps(event) for event in events))


@given(st.integers(1, 3), st.sampled_from(["claude", "", "codex"]))
def test_deep_nesting_never_raises(times, agent):
    read('{"error":' * 20_000 * times, agent=agent)
    read("[" * 50_000 * times + "]", agent=agent)


# What a terminal, a logger or a wrapper does to a banner must not change what it means.
BANNERS = (
    ("You've hit your session limit · resets 9pm (UTC)", "quota", 9 * 3600),
    ("You've hit your usage limit. Try again at Jul 8th, 2026 2:14 AM.", "quota", 137640),
    ("Weekly limit reached · resets Jul 8, 9am (UTC)", "quota", 162000),
    ("Your quota will reset after 8h44m7s.", "quota", 31447),
    ("Rate limit exceeded. Try again in 41 seconds.", "rate_limit", 41),
    (
        "Rate limit reached for m on requests per min: Limit 9. Try again in 7m12s.",
        "rate_limit",
        432,
    ),
)


def wrapped(width, indent):
    return lambda text: "\n".join(textwrap.wrap(text, width, subsequent_indent=indent))


def cut(width):
    """As a terminal cuts that knows no words."""
    return lambda text: "\n".join(text[at : at + width] for at in range(0, len(text), width))


def body(text):
    return json.dumps({"error": {"message": text, "code": 429}})


def boxed(text):
    inside = textwrap.wrap(text, 50)
    return "\n".join(
        ["╭" + "─" * 52 + "╮", *(f"│ {line:<50} │" for line in inside), "╰" + "─" * 52 + "╯"]
    )


COSTUMES = {
    "wrapped": wrapped(48, ""),
    "indented": wrapped(56, "  "),
    "cut at 44": cut(44),
    "cut at 47": cut(47),
    "cut at 60": cut(60),
    "boxed": boxed,
    "coloured": lambda text: f"\x1b[1;31m{text}\x1b[0m",
    "typographic": lambda text: text.replace("'", "’"),
    "windows": lambda text: f"{text}\r\n",
    "error": lambda text: f"ERROR: {text}",
    "logged": lambda text: f"2026-07-06T12:00:00Z ERROR {text}",
    "stamped": lambda text: f"2026-07-06T12:00:00.123Z {text}",
    "tagged": lambda text: f"[2026-07-06 12:00:00] [runner] [error] {text}",
    "crossed": lambda text: f"❌ {text}",
    "cornered": lambda text: f"⏺ Read(a.py)\n  ⎿  Read 9 lines\n\n  ⎿  {text}",
    "quoted": lambda text: "> " + text,
    "raised": lambda text: (
        f'Traceback (most recent call last):\n  File "x.py", line 3\nx.AgentError: {text}'
    ),
    "thrown": lambda text: (
        f"Error: {text}\n    at run (/x/cli.js:10:2)\n    at go (node:internal:9:5)"
    ),
    "prompted": lambda text: f"{text}\n\n❯ \n  ? for shortcuts",
    "body": body,
    "body in a body": lambda text: json.dumps({"error": {"message": body(text)}}),
    "litellm": lambda text: f"litellm.RateLimitError: AcmeException - {body(text)}",
    "printed": lambda text: f"acme.RateLimitError: Error code: 429 - {json.loads(body(text))!r}",
    "after work": lambda text: f"I read the module.\n\nIt has two parts.\n\n{text}",
    "twice": lambda text: f"{text}\n{text}",
    "claude": lambda text: json.dumps({"type": "result", "is_error": True, "result": text}),
    "codex": lambda text: json.dumps({"type": "turn.failed", "error": {"message": text}}),
    "gemini": lambda text: json.dumps({"session_id": "s", "error": {"message": text}}, indent=2),
}


@pytest.mark.parametrize("costume", COSTUMES)
@pytest.mark.parametrize(("banner", "expected", "reset"), BANNERS)
def test_a_banner_means_the_same_in_every_costume(costume, banner, expected, reset):
    found = read(COSTUMES[costume](banner))
    assert found.failure is not None
    assert str(found.failure.kind) == expected
    assert found.reset is not None
    assert found.reset.seconds == reset


@settings(max_examples=200, deadline=None)
@given(
    banner=st.sampled_from(BANNERS),
    costumes=st.lists(
        st.sampled_from(["wrapped", "coloured", "typographic", "error"]), max_size=2, unique=True
    ),
    hours=st.integers(-11, 12),
)
def test_costumes_may_be_worn_over_each_other(banner, costumes, hours):
    text, expected, _ = banner
    for costume in costumes:
        text = COSTUMES[costume](text)
    found = read_output(text, packs=PACKS, now=NOW, zone=timezone(timedelta(hours=hours)))
    assert found.failure is not None
    assert str(found.failure.kind) == expected
    assert found.reset is not None


def took(text, exit_code):
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        read(text, exit_code=exit_code)
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.parametrize("exit_code", [None, 1])
@pytest.mark.parametrize(
    "line",
    [
        "The limit of the API was reached again, so the error is retried and the quota resets\n",
        '{"error": {"message": "x\n',
        '{"type":"error","message":"Rate limit reached, try again in 5s"}\n',
        "│ limit reached, or so it says │\n",
        "resets ",
        "[" * 30,
        "\x1b[31m",
        '"\n',
        "\n",
        "\r",
        " \r\n",
        "a=",
        "err=x&y=",
        '{"a":1} ',
        '{\\"a\\": 1}\n',
        '{"a": {"b": [1,2,{"c":"d"}]}\n',
        '{"error":{"message":"m","code":"c"}}\n',
        "  message: 'Rate limit reached',\n",
        "2026-07-06 12:00:00 ERROR the step failed: no luck\n",
        "   'Rate limit reached\\n' +\n   '    at run (a.js:1:2)\\n' +\n",
        "< HTTP/2 429\n< retry-after: 2\n",
        "429 Too Many Requests\n",
        "acme::agent::llm: ",
        "```\n/*\n",
    ],
)
def test_ten_times_the_text_takes_at_most_twelve_times_as_long(line, exit_code):
    small, large = (line * (size // len(line)) for size in (20_000, 200_000))
    # A neighbour can spoil one measurement, but not four.
    ratios = (took(large, exit_code) / max(took(small, exit_code), 0.005) for _ in range(4))
    assert any(ratio <= 12 for ratio in ratios)


@pytest.mark.parametrize(
    "text",
    [
        '{"error":{"message":"x","code":"²"}}',
        '{"type":"result","is_error":true,"api_error_status":"⁴²⁹"}',
        "[" * 990 + "]" * 990,
        "[[" * 330 + '{"error":"x"}' + "]]" * 330,
        "{'error': {'message': 'rate limit', 'retry_after': 0x" + "f" * 4000 + "}}",
        '{"error":{"message":"rate limit exceeded","retry_after_ms":1e300}}',
        "{'error': {'message': 'rate limit \\d'}}",
    ],
)
def test_values_that_no_vendor_sends_are_no_trouble(text):
    reset = read(text).reset
    assert reset is None or reset.seconds < 1e9

"""What holds for every reader, whatever a program prints."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.agents.adapter import Launch
from mulligan.run.agents.catalogue import NAMES, known, program
from mulligan.run.agents.output_reader import SESSION_ID

PROGRAMS = sorted(set(NAMES.values()))

# The names that readers look at, so that what is drawn gets past the first question.
KINDS = re.findall(
    r"\S+",
    """
    system assistant user result rate_limit_event thread.started item.started item.completed
    turn.completed turn.failed error message tool_use tool_result init text step_finish
    session.error assistant.message assistant.turn_retry tool.execution_start
    tool.execution_complete assistant.usage session auto_retry_start message_end
    tool_execution_start tool_execution_end agent_event run_result
""",
)
FIELDS = re.findall(
    r"\S+",
    """
    message content usage session_id sessionID sessionId thread_id id item part data event stats
    total_cost_usd cost tokens total input_tokens output_tokens total_tokens totalCost result
    errors role subtype text tool_id toolCallId tool_use_id retry_delay_ms delayMs state models
    stopReason errorMessage contentType exit_code command
""",
)

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from([*KINDS, "assistant", "api_retry", "tool_use", "error", "command_execution"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=8,
)
EVENTS = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
)
STREAMS = st.sampled_from(["stdout", "stderr"])
LINES = (
    EVENTS.map(lambda event: json.dumps(event, separators=(",", ":")).encode())
    | st.lists(EVENTS, max_size=3).map(lambda events: json.dumps(events).encode())
    | st.tuples(EVENTS, st.integers(1, 60)).map(
        lambda drawn: json.dumps(drawn[0], separators=(",", ":")).encode()[: drawn[1]]
    )
    | st.sampled_from([b"{", b"}", b"[", b"]", b'{"', b"[" * 9999, b"1e999", b"\xff\xfe{", b""])
    | st.binary(max_size=60)
)


@given(st.sampled_from(PROGRAMS), st.booleans(), st.lists(st.tuples(STREAMS, LINES), max_size=8))
def test_no_bytes_make_a_reader_raise_and_nothing_that_was_told_is_taken_back(
    name, is_translated, lines
):
    reader = program(name).reader(Launch(argv=(name,), is_translated=is_translated))
    cost, tokens = 0.0, 0
    for note in (*(reader.line(stream, line) for stream, line in lines), reader.end()):
        if note is None:
            continue
        assert not note.session or SESSION_ID.fullmatch(note.session)
        assert not note.session.startswith("-")
        assert 0 <= note.quiet < 1e15
        cost_now = cost if note.cost is None else note.cost
        tokens_now = tokens if note.tokens is None else note.tokens
        assert cost_now >= cost
        assert tokens_now >= tokens
        cost, tokens = cost_now, tokens_now
        assert all(note.pending or ())
        assert is_translated or not note.shown
        for stream, text in note.shown:
            assert stream in {"stdout", "stderr"}
            text.encode()


@given(st.binary(max_size=200))
def test_plain_words_are_shown_as_they_are(words):
    line = words.replace(b"\n", b" ").replace(b"{", b"(").replace(b"[", b"(")
    reader = program("claude").reader(Launch(argv=("claude",), is_translated=True))
    note = reader.line("stdout", line)
    assert note is not None
    assert note.shown == [("stdout", line.decode("utf-8", "replace") + "\n")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_of_several_megabytes_are_read(name):
    # In bounded steps a byte: anything quadratic would not end before the night does.
    size = 3_000_000
    reader = program(name).reader(Launch(argv=(name,), is_translated=True))
    for line in (
        b'{"type":"assistant","message":{"content":[{"text":"' + b"x" * size + b'"}]}}',
        b'{"type":"' + b"x" * size,
        b'{"type":"' * (size // 9),
        b"[" * size,
        b"Attempt " + b"1" * size,
        b"Tokens: " + b"1" * size,
        b"Error: " + b"x" * size,
        b" " * size,
    ):
        reader.line("stdout", line)
        reader.line("stderr", line)
    reader.end()


def test_every_known_name_has_a_program():
    assert len(known()) == len(PROGRAMS)

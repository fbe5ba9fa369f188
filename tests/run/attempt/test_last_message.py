"""A commit says what the agent said last, not why it failed (R-P5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.attempt.clean_tree import last_message

LIMIT = "You've hit your session limit · resets 5pm"
CLAUDE = {
    "type": "assistant",
    "message": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me look.\n\nParser handles\nquotes."},
            {"type": "tool_use", "name": "Bash", "input": {"text": "rm"}},
        ],
    },
}
CODEX = {"type": "item.completed", "item": {"type": "agent_message", "text": "Parser done"}}
GEMINI = {"type": "message", "role": "assistant", "content": "Parser is there"}
TOOL = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "No"}]}}
END = {"type": "result", "is_error": True, "result": LIMIT}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([CLAUDE, TOOL, END], "Parser handles quotes."),
        ([CODEX, {"type": "error", "message": LIMIT}], "Parser done"),
        ([GEMINI, {"type": "error", "text": LIMIT}], "Parser is there"),
        (["one", "two  of three", "", LIMIT], "two of three"),
        ([f"API Error: {LIMIT}"], ""),
        ([{"type": "assistant", "text": LIMIT}], ""),
        ([END], ""),
        (['{"type": "assistant", "text": "half'], ""),
        ([], ""),
    ],
)
def test_the_last_words_are_the_agents_own(tmp_path, lines, words):
    said = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    (tmp_path / "attempt-1.out").write_text("\n".join(said))
    assert last_message(tmp_path / "attempt-1", LIMIT) == words


def test_an_attempt_without_a_log_has_said_nothing(tmp_path):
    assert last_message(tmp_path / "attempt-1") == ""


@given(st.binary(max_size=200))
def test_whatever_was_printed_is_read(tmp_path_factory, printed):
    log = tmp_path_factory.mktemp("log") / "attempt-1"
    log.with_suffix(".out").write_bytes(b'{"text": ' * 20 + printed)
    assert isinstance(last_message(log), str)

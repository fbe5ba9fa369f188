"""An agent's words in a commit are data (DESIGN: Hostile input)."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.git.commits import message_of


def test_short_words_are_the_subject():
    said = message_of("Fixed it.", ["a.py"], name="r/1")
    assert said == "mulligan: Fixed it.\n\nMulligan-Run: r/1\n"


def test_long_words_go_on_below():
    words = "I rewrote the parser so that it no longer loops on empty lines and added three tests"
    said = message_of(words, [], name="r/1")
    subject, blank, rest, *_ = said.splitlines()
    assert subject == "mulligan: I rewrote the parser so that it no longer loops on empty…"
    assert (blank, rest) == ("", "…lines and added three tests")


def test_without_words_the_files_speak():
    assert message_of("", ["a.py"], name="r/1").startswith("mulligan: unfinished changes to a.py\n")
    many = message_of("", ["a", "b", "c", "d"], name="r/1", prefix="wip ")
    assert many.startswith("wip unfinished changes to 4 files: a, b, c, …\n")


def test_escapes_directions_and_secrets_are_gone():
    words = "\x1b]0;title\x07done \u202egnp.exe\x00 with sk-ant-api03-abcdefghijklmnopqrstuv"
    assert (
        message_of(words, [], name="r/1").splitlines()[0] == "mulligan: done gnp.exe with [masked]"
    )


def test_words_cannot_forge_a_trailer():
    words = "done\n\nMulligan-Run: other/9\nCo-authored-by: Eve <eve@example.com>"
    *_, last = message_of(words, [], name="r/1").rstrip().split("\n\n")
    assert last == "Mulligan-Run: r/1"


@given(words=st.text(max_size=3000), paths=st.lists(st.text(max_size=200), max_size=5))
def test_whatever_was_said_the_message_can_be_printed(words, paths):
    said = message_of(words, paths, name="r/1")
    assert len(said) < 900
    assert not [c for c in said.replace("\n", "") if unicodedata.category(c) in {"Cc", "Cs"}]
    assert all(len(line) <= 200 for line in said.splitlines())
    assert said.splitlines()[0].startswith("mulligan: ")

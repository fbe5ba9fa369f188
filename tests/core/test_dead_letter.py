from __future__ import annotations

import pytest

from mulligan.core.dead_letter import Letter, Mark, Record

LETTER = Letter(
    id="1",
    at=1.0,
    target="t",
    function="m.f",
    ending="exhausted",
    because="attempt 2 of 2 failed",
    attempts=2,
    kind="network",
)


def test_a_letter_reads_as_it_was_written():
    assert Letter.unpack(LETTER.pack()) == LETTER
    assert Letter.unpack(LETTER.pack().replace('"id"', '"from":"a later version","id"')) == LETTER
    for text in ("[]", '"x"', "{}", '{"id":"1"}', "nonsense"):
        with pytest.raises(ValueError, match=r"expected|no dead letter|no mark|no state|Expecting"):
            Letter.unpack(text)


def test_the_last_mark_is_the_state():
    assert Record(letter=LETTER).state == "waiting"
    marks = (Mark(state="replaying", at=1), Mark(state="failed", at=2, because="x"))
    assert tuple(Mark.unpack(mark.pack()) for mark in marks) == marks
    assert Record(letter=LETTER, marks=marks).state == "failed"
    for text in ("[]", "{}", '{"state":"lost","at":1}'):
        with pytest.raises(ValueError, match=r"expected|no dead letter|no mark|no state|Expecting"):
            Mark.unpack(text)

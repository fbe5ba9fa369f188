"""Each prefix of an error is seen at work."""

from __future__ import annotations

import re

import pytest

from mulligan.classify.output.error_prefixes import ERROR_PREFIXES
from mulligan.classify.output.speaker import read_line


@pytest.mark.parametrize("row", ERROR_PREFIXES, ids=lambda row: row.example[:40])
def test_a_prefix_matches_its_example_and_says_where_it_was_seen(row):
    assert re.match(row.pattern, row.example, re.IGNORECASE)
    assert read_line(row.example).is_error
    assert row.seen


def test_a_sentence_of_a_person_does_not_introduce_an_error():
    assert not read_line("I stopped here: the rate limit was reached").is_error
    assert read_line("worker 3 gave up after 2 tries: the rate limit was reached").is_error

"""Each row of the introductions of errors is seen at work."""

from __future__ import annotations

import re

import pytest

from mulligan.classify.output.introductions import INTRODUCTIONS
from mulligan.classify.output.speaker import read_line


@pytest.mark.parametrize("row", INTRODUCTIONS, ids=lambda row: row.example[:40])
def test_an_introduction_matches_its_example_and_says_where_it_was_seen(row):
    assert re.match(row.pattern, row.example, re.IGNORECASE)
    assert read_line(row.example).is_error
    assert row.seen

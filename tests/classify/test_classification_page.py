"""docs/classification.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mulligan.classify.http import classify_response
from mulligan.core.failure import Failure

PAGE = (Path(__file__).parents[2] / "docs" / "classification.md").read_text(encoding="utf-8")
STATUSES = re.findall(
    r"^\| ([^|]*[0-9][^|]*) \| `([a-z_]+)`.* \| ([a-z ]+) \|$", PAGE, re.MULTILINE
)


@pytest.mark.parametrize(("statuses", "kind", "reach"), STATUSES)
def test_the_table_of_statuses_is_true(statuses, kind, reach):
    for status in re.findall(r"[0-9]+", "404" if "other" in statuses else statuses):
        failure = classify_response(int(status), now=0.0)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.reach) == (kind, reach.replace(" ", "_")), status


def test_the_table_of_statuses_was_found():
    assert len(STATUSES) == 12

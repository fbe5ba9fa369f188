"""The page about recovery shows the committed result of its benchmark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"


@pytest.fixture
def page_module(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import _recovery_page

    yield _recovery_page
    sys.modules.pop("_recovery_page")


def test_the_table_is_the_committed_results(page_module):
    result = json.loads((BENCH / "results" / "recovery.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "recovery.md").read_text(encoding="utf-8")
    assert page_module.page_with(page, result) == page


def test_the_picture_is_there():
    picture = (BENCH / "results" / "recovery.svg").read_text(encoding="utf-8")
    assert "Mulligan" in picture

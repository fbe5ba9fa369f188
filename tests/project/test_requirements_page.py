"""docs/requirements.md: every number that the code cites has a row, every test named there exists.

The third column names one test of each rule. After a test was renamed, correct its row.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([RE]-[A-Z]\d+) \| .+ \| `([^`]+)` \|$", PAGE, re.MULTILINE)
NUMBER = re.compile(r"\b[RE]-[A-Z]\d+\b")


def test_every_number_in_the_code_has_a_row_on_the_page():
    cited: set[str] = set()
    for folder in ("src", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__):
                cited |= set(NUMBER.findall(path.read_text(encoding="utf-8")))
    rows = [number for number, _ in ROWS]
    assert sorted(cited) == sorted(rows)


def test_every_test_on_the_page_exists():
    for number, test in ROWS:
        file, _, name = test.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{number}: no {file}"
        if name:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in names, f"{number}: no {name} in {file}"


def test_pages_for_users_cite_no_number():
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "ARCHITECTURE.md")]
    pages += [path for path in (ROOT / "docs").glob("*.md") if path.name != "requirements.md"]
    for path in pages:
        assert not NUMBER.findall(path.read_text(encoding="utf-8")), path.name

"""Names: public classes are unique across the package, and ARCHITECTURE names what exists."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mulligan"
PAGES = ["ARCHITECTURE.md", "docs/decisions.md", "CONTRIBUTING.md"]

# Two classes may share a name for a reason that stands here.
SHARED: dict[str, str] = {}


def public_classes():
    found = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(file.relative_to(PACKAGE)))
    return found


def test_no_two_public_classes_share_a_name():
    twice = {name: files for name, files in public_classes().items() if len(files) > 1}
    assert twice.keys() - SHARED.keys() == set(), twice
    assert SHARED.keys() <= twice.keys()  # no exception outlives its reason


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    rooms = "|".join(sorted(each.name for each in PACKAGE.iterdir() if each.is_dir()))
    named = re.findall(rf"(?<![\w/.])((?:{rooms})/[a-z_0-9/]+)(?:\.py)?\b(?!\.[a-z])", text)
    named += [each.replace(".", "/") for each in re.findall(rf"`((?:{rooms})\.[a-z_.]+)`", text)]
    gone = {
        each
        for each in named
        if not any(place.exists() for place in (PACKAGE / each, PACKAGE / f"{each}.py"))
        and not (PACKAGE / each).parent.with_suffix(".py").exists()  # a name in a module
    }
    assert not gone
    files = re.findall(r"`((?:tests|bench|docs)/[\w/.-]+)`", text)
    assert {each for each in files if not (ROOT / each).exists()} == set()

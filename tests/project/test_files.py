"""Rules for source files: a sentence at the top, no TODO, no name of a machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PURE = [
    path
    for path in SOURCES
    if {"core", "classify"} & set(path.parts[len(ROOT.parts) :]) or path.name == "errors.py"
]


def name_of(path):
    return str(path.relative_to(ROOT))


def committed():
    """Every file that git knows, or would know."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in found if path.is_file()]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_module_opens_with_one_sentence(path):
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert doc
    first, *rest = doc.splitlines()
    assert first.endswith(".")
    assert not rest or not rest[0]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_exception_to_a_rule_has_its_reason_beside_it(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        assert "# noqa" not in line or re.search(r"# noqa: [A-Z0-9, ]+ +-- \S", line), line


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_is_left_for_later(path):
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(?:TODO|FIXME|XXX|HACK)\b", source)
    assert "NotImplementedError\n" not in source


# Pieces, so that this file does not name what it looks for.
MACHINES = ("/ro" + "ot/", "/wo" + "rk/", "/tm" + "p/wt")
REGISTRIES = ("py" + "pi.org", "python" + "hosted", "/opt/" + "py" + "pi", "arti" + "factory")


@pytest.mark.real
def test_no_file_names_a_machine_or_a_registry():
    for path in committed():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for word in (*MACHINES, *REGISTRIES):
            assert word not in text, f"{name_of(path)} names {word}"


@pytest.mark.real
def test_no_lock_file_is_committed():
    named = [path.name for path in committed() if path.suffix != ".py"]
    locks = [name for name in named if re.search(r"(?:^|[._-])lock(?:\.|$)", name)]
    assert locks == []


# import-linter sees imports; these are the ways around them.
SURPRISES = {
    *("open", "input", "print", "eval", "exec", "compile", "__import__", "breakpoint"),
    *("import_module", "read_text", "write_text", "read_bytes", "write_bytes"),
    *("today", "utcnow", "getenv", "urandom"),
}


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_pure_modules_call_nothing_that_can_surprise(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name):
            assert called.id not in SURPRISES, f"line {node.lineno}: {called.id}()"
        elif isinstance(called, ast.Attribute):
            is_re = isinstance(called.value, ast.Name) and called.value.id == "re"
            name = called.attr
            assert is_re or name not in SURPRISES, f"line {node.lineno}: .{name}()"
            if name == "now":  # datetime.now(); a clock's now() is an argument's
                assert isinstance(called.value, ast.Name)
                assert called.value.id not in {"datetime", "date"}


def test_there_are_pure_modules_to_look_at():
    assert len(PURE) > 20

"""Imports go downward only, and the check that says so can say no."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.real


def lint(folder):
    """Run import-linter on the package under `folder`; its exit code, and what it said."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """The project in a folder where it may be spoiled."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    return tmp_path


def test_the_layers_hold():
    code, said = lint(ROOT)
    assert code == 0, said
    assert "0 broken" in said


def test_a_planted_violation_turns_every_contract_red(copy):
    package = copy / "src" / "mulligan"
    for module, line in (
        ("core/duration.py", "from ..calls import clock  # upward"),
        ("core/hint.py", "import time  # in the core"),
        ("classify/headers.py", "import socket  # in classification"),
        ("api/task.py", "import mulligan  # the front door"),
    ):
        file = package / module
        file.write_text(file.read_text() + f"\n{line}\n")
    code, said = lint(copy)
    assert code == 1
    for contract in (
        "Imports go downward only BROKEN",
        "The core is pure BROKEN",
        "Classification is pure BROKEN",
        "Nothing inside imports the front door BROKEN",
    ):
        assert contract in said, said


def test_a_module_without_a_layer_turns_it_red(copy):
    (copy / "src" / "mulligan" / "helpers.py").write_text('"""Helpers."""\n')
    code, said = lint(copy)
    assert code == 1
    assert "helpers" in said

"""Git recovery is usable alone, and nobody has it who did not ask (R-P4, R-P6)."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.real


def loaded_by(line: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {line}; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return {*done.stdout.split()}


def test_it_brings_nothing_of_the_rest_of_a_run():
    loaded = loaded_by("import mulligan.run.git")
    ours = {name for name in loaded if name.startswith("mulligan.")}
    pure = ("mulligan.run.git", "mulligan.core")
    rest = {name for name in ours if not name.startswith(pure)}
    assert rest <= {
        *("mulligan.run", "mulligan.run.process", "mulligan.run.process.spawn", "mulligan.errors"),
        *("mulligan.stores", "mulligan.stores.home"),
    }
    assert not loaded & {"pydantic", "rich", "click", "asyncio", "sqlite3", "logging"}


def test_nobody_else_brings_it():
    assert "mulligan.run" not in loaded_by("import mulligan; mulligan.Guard('x')")

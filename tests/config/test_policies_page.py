"""docs/policies.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mulligan.config.lint import lint
from mulligan.config.loader import load_policy
from mulligan.config.suggestions import _ANY_BACKOFF, _POLICY, _RULE, _TIMEOUTS
from mulligan.core.presets import PRESETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
FILES = re.findall(r"```toml\n(# policy\.toml\n.*?)```", PAGE, re.DOTALL)


def test_the_example_loads_and_contradicts_nothing():
    assert lint(load_policy(ROOT / "examples" / "policy.toml")) == ()


@pytest.mark.parametrize("words", FILES)
def test_every_file_on_the_page_loads_and_contradicts_nothing(tmp_path, words):
    (tmp_path / "policy.toml").write_text(words, encoding="utf-8")
    assert lint(load_policy(tmp_path / "policy.toml")) == ()


def test_the_page_names_every_preset_and_every_key():
    words = set(re.findall(r"`\"?(\w+)\"?`", PAGE))
    unsaid = (set(PRESETS) | _POLICY | _RULE | _TIMEOUTS | _ANY_BACKOFF) - words
    assert unsaid == {"codes", "rules", "timeouts"}  # which are tables: [codes], [rules.KIND] …
    assert all(f"[{table}" in PAGE for table in unsaid)


def test_every_python_snippet_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    exec(compile(code, "docs/policies.md", "exec"), {})  # noqa: S102 -- our own page

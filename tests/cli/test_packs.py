from __future__ import annotations

import pytest
from click.testing import CliRunner

from mulligan.cli.commands.packs import command

GOOD = (
    'version = 3\nagents = ["acme"]\n[[entry]]\nid = "busy"\nmatch = "acme is busy"\n'
    'kind = "overloaded"\nseen = "Acme 1"\n'
)


@pytest.fixture(autouse=True)
def _no_packs_of_mine(monkeypatch, tmp_path):
    monkeypatch.delenv("MULLIGAN_PACKS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def run(*args):
    return CliRunner().invoke(command, list(args), catch_exceptions=False)


def test_the_list_shows_the_users_packs_first(monkeypatch, tmp_path):
    mine = tmp_path / "acme.toml"
    mine.write_text(GOOD, encoding="utf-8")
    monkeypatch.setenv("MULLIGAN_PACKS", str(mine))
    rows = run("list").stdout.splitlines()
    assert rows[0].split() == ["PACK", "VERSION", "ENTRIES", "FILE", "AGENTS"]
    assert rows[1].split() == ["acme", "3", "1", str(mine), "acme"]
    assert rows[-1].split()[0] == "generic"


def test_a_good_file_passes_the_check(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text(GOOD, encoding="utf-8")
    result = run("check", str(file))
    assert result.exit_code == 0
    assert result.stdout == "1 packs, 1 entries, timed on up to 4000 hostile characters\n"


def test_a_bad_file_fails_the_check_and_names_the_entry(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text(GOOD.replace("overloaded", "busy"), encoding="utf-8")
    result = run("check", str(file))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}: entry[0] busy: kind needs one of ")


def test_a_slow_pattern_fails_the_check(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text(GOOD.replace("acme is busy", "a[^x]*a{0,50}c"), encoding="utf-8")
    result = run("check", str(file))
    assert result.exit_code == 1
    assert "hostile characters; at most 50 ms" in result.stderr

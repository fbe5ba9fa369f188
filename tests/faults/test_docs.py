"""What the page and the example say is what the server does."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mulligan.faults.file import read_toml
from mulligan.faults.script import Script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/fault-server.md").read_text(encoding="utf-8")


def test_every_script_on_the_page_is_one():
    table = PAGE.partition("| you write |")[2].partition("\n\n")[0]
    scripts = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    scripts += re.findall(r"mulligan faults (?:set )?'([^']+)'", PAGE)
    scripts += re.findall(r'\.set\("([^"]+)"\)', PAGE)
    assert len(scripts) == 13
    for script in scripts:
        assert Script.parse(script).rules


def test_the_file_on_the_page_is_read():
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert tomllib.loads(text)
    limits = read_toml(text, file="page").limits
    assert limits is not None
    assert limits.counts_refusals


def test_the_page_has_the_five_headings():
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == [
        "What it does",
        "Use it",
        "Defaults",
        "What it reports",
        "How people get it wrong",
    ]


@pytest.mark.real
def test_the_example_runs_and_the_key_saves_the_second_payment():
    run = [sys.executable, str(ROOT / "examples/fault_server.py")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=20, check=True)
    assert re.findall(r"\d+ effects, \d+ duplicates", done.stdout) == [
        "2 effects, 1 duplicates",
        "1 effects, 0 duplicates",
    ]

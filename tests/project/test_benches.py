from __future__ import annotations

import ast
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
BENCHES = sorted(file for file in BENCH.glob("*.py") if not file.name.startswith("_"))


def ran(file, *args):
    return subprocess.run(
        [sys.executable, str(file), *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_a_bench_opens_with_its_question_baseline_claim_and_how_to_run_it(file):
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    assert text.partition("\n")[0].endswith("?")
    headings = [line.split()[0] for line in text.splitlines()[1:] if line and line[0] != " "]
    assert headings == ["Question", "Baseline", "Claim", "Run"]
    assert f"python bench/{file.name}" in text


@pytest.mark.real
@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_a_bench_explains_itself(file):
    done = ran(file, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Question" in done.stdout
    assert "--quick" in done.stdout


@pytest.mark.real
@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_a_quick_run_of_a_bench_gives_a_verdict_on_every_question(file, tmp_path):
    kept = BENCH / "results" / f"{file.stem}.json"
    before = kept.read_bytes() if kept.exists() else None
    result = tmp_path / "result.json"
    done = ran(file, "--quick", "--json", str(result))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict" in done.stdout
    assert json.loads(result.read_text(encoding="utf-8"))["bench"] == file.stem
    assert (kept.read_bytes() if kept.exists() else None) == before


WITHOUT_PEERS = """
import runpy, sys
for peer in ("nopanic", "redress", "tenacity", "trio"):
    sys.modules[peer] = None
sys.argv = ["overhead.py", "--quick"]
sys.path.insert(0, {folder!r})
runpy.run_path({folder!r} + "/overhead.py", run_name="__main__")
"""


@pytest.mark.real
def test_a_claim_against_a_peer_that_is_not_installed_is_not_measured_and_not_held():
    done = ran("-c", WITHOUT_PEERS.format(folder=str(BENCH)))
    assert done.returncode == 0, done.stderr
    verdicts = done.stdout.partition("Verdicts")[2]
    for peer in ("nopanic", "redress", "tenacity", "trio"):
        told = [line for line in verdicts.splitlines() if f"{peer} is not installed" in line]
        assert told
        assert all(line.endswith("NOT MEASURED") for line in told)


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_the_committed_result_says_when_and_on_what_but_not_where(file):
    text = (BENCH / "results" / f"{file.stem}.json").read_text(encoding="utf-8")
    result = json.loads(text)
    assert {"date", "python", "cpu", "cores", "versions"} <= result.keys()
    assert platform.node() not in text
    assert not any(str(path) in text for path in (Path.home(), BENCH.parent, sys.prefix))

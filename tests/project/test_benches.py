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
        timeout=280,
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
for peer in ("circuitbreaker", "nopanic", "redress", "tenacity", "trio"):
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
    for peer in ("circuitbreaker", "nopanic", "redress", "tenacity", "trio"):
        told = [line for line in verdicts.splitlines() if f"{peer} is not installed" in line]
        assert told
        assert all(line.endswith("NOT MEASURED") for line in told)


def test_the_readme_quotes_the_committed_result():
    result = json.loads((BENCH / "results" / "overhead.json").read_text(encoding="utf-8"))
    ratios = {row["question"]: row.get("ratio") for row in result["verdicts"]}
    added = result["added_ns"]
    sync, fresh = ratios["calm call, sync"], ratios["… with fresh words each time"]
    retried = "A plain function that fails with a 503 and succeeds at the second attempt"
    words = " ".join((BENCH.parent / "README.md").read_text(encoding="utf-8").split())
    for said in (
        f"costs {_cost(added, 'A plain function that succeeds at once'):.0f} ns more",
        f"{sync['median']:.2f} times what nopanic 0.3 adds",
        f"a coroutine {_cost(added, 'A coroutine function that succeeds at once'):.0f} ns",
        f"{ratios['calm call, async']['median']:.2f} times",
        (
            f"it is {ratios['breaker, gate and tokens, sync']['median']:.2f} and "
            f"{ratios['breaker, gate and tokens, async']['median']:.2f} times"
        ),
        (
            f"{ratios['reading quota headers, sync']['median']:.1f} and "
            f"{ratios['reading quota headers, async']['median']:.1f} times"
        ),
        f"costs {_cost(added, retried) / 1000:.1f} µs",
        f"{ratios['retry of a 503, sync']['median']:.2f} times what redress 1.4 adds",
    ):
        assert said in words
    assert fresh["median"] == pytest.approx(1, abs=0.05)  # "as much as redress"
    assert result["versions"]["nopanic"].startswith("0.3")
    assert result["versions"]["redress"].startswith("1.4")
    assert not [row for row in result["verdicts"] if row["verdict"] == "BROKEN"]


def _cost(added, title):
    return added[title]["mulligan.retry"]["median"]


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_the_committed_result_says_when_and_on_what_but_not_where(file):
    text = (BENCH / "results" / f"{file.stem}.json").read_text(encoding="utf-8")
    result = json.loads(text)
    assert {"date", "python", "cpu", "cores", "versions"} <= result.keys()
    assert platform.node() not in text
    assert not any(str(path) in text for path in (Path.home(), BENCH.parent, sys.prefix))

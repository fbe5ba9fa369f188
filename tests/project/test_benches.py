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
    assert "verdict" in done.stdout, done.stderr
    found = json.loads(result.read_text(encoding="utf-8"))
    assert found["bench"] == file.stem
    # The soak lists what was wrong, part by part; every other bench judges its questions.
    rows = found.get("verdicts") or found["parts"]
    broken = {row["question"] for row in rows if row.get("verdict") == "BROKEN"}
    # Some benches judge no time in a quick run; none fails for another reason than a broken claim.
    assert done.returncode == 0 or (done.returncode == 1 and broken), done.stdout + done.stderr
    assert not [each for each in broken if "duplicates" in each]  # harm is never on the list
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


def test_the_page_quotes_the_committed_result():
    result = json.loads((BENCH / "results" / "overhead.json").read_text(encoding="utf-8"))
    ratios = {row["question"]: row.get("ratio") for row in result["verdicts"]}
    added = result["added_ns"]
    sync, fresh = ratios["calm call, sync"], ratios["… with fresh words each time"]
    retried = "A plain function that fails with a 503 and succeeds at the second attempt"
    words = " ".join((BENCH.parent / "docs/benchmarks.md").read_text(encoding="utf-8").split())
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
        f"{fresh['median']:.2f} times where they are new each time",
        f"guard takes {ratios['make a guard']:.1f} times as long as importing tenacity",
        f"the first failure of `@mulligan.retry` {ratios['first failure']:.1f} times",
    ):
        assert said in words
    assert result["versions"]["nopanic"].startswith("0.3")
    assert result["versions"]["redress"].startswith("1.4")
    assert not [row for row in result["verdicts"] if row["verdict"] == "BROKEN"]


def test_the_page_says_which_claim_about_runs_is_broken():
    result = json.loads((BENCH / "results" / "run.json").read_text(encoding="utf-8"))
    words = " ".join((BENCH.parent / "docs/benchmarks.md").read_text(encoding="utf-8").split())
    row = result["verdicts"][0]
    said = f"takes {row['ratio']['median']:.2f} times as long as loading the libraries"
    assert (said in words) is (row["verdict"] == "BROKEN")
    assert not [each for each in result["verdicts"][1:] if each["verdict"] == "BROKEN"]


def test_the_readme_compares_the_committed_results():
    results = {
        name: json.loads((BENCH / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("overhead", "recovery")
    }
    added, quality = results["overhead"]["added_ns"], results["recovery"]["quality"]
    words = (BENCH.parent / "README.md").read_text(encoding="utf-8")
    for title, row in (
        ("A plain function that succeeds at once", "time added to a call that succeeds"),
        ("A coroutine function that succeeds at once", "… to a coroutine that succeeds"),
    ):
        ours, stamina, tenacity = (
            added[title][f"{name}.retry"]["median"] / 1000
            for name in ("mulligan", "stamina", "tenacity")
        )
        assert f"| {row} | {ours:.2f} µs | {stamina:.0f} µs | {tenacity:.0f} µs |" in words
    means = [f"{quality[name]['mean']:.0f}" for name in ("Mulligan", "stamina", "tenacity")]
    assert f"best possible client | {' | '.join(means)} |" in words


def _cost(added, title):
    return added[title]["mulligan.retry"]["median"]


@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_the_committed_result_says_when_and_on_what_but_not_where(file):
    text = (BENCH / "results" / f"{file.stem}.json").read_text(encoding="utf-8")
    result = json.loads(text)
    assert {"date", "python", "cpu", "cores", "versions"} <= result.keys()
    assert platform.node() not in text
    assert not any(str(path) in text for path in (Path.home(), BENCH.parent, sys.prefix))


@pytest.mark.real
def test_samples_of_reports_are_scored_and_those_without_a_label_are_skipped(tmp_path):
    corpus = tmp_path / "mine.jsonl"
    report = [sys.executable, "-m", "mulligan", "report", "--exit-code", "1"]
    said = b"You've hit your limit, resets in 2h\n"
    labelled = [*report, "--expected", "quota", "--expected-reset", "2h"]
    samples = [
        subprocess.run(each, input=said, capture_output=True, check=True).stdout
        for each in (labelled, report)
    ]
    corpus.write_bytes(b"".join(samples))
    done = ran(BENCH / "detection.py", str(corpus))
    assert (done.returncode, done.stderr) == (0, "skipped 1 without a label\n"), done.stdout
    assert "1 messages" in done.stdout
    corpus.write_bytes(samples[1])
    done = ran(BENCH / "detection.py", str(corpus))
    assert done.returncode == 2
    assert "no message has a label" in done.stderr

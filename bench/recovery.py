"""How close to the limit does a client come when its server fails?

Question   In 33 scenarios with a known optimum (limits stated, unstated and misstated, outages,
           brown-outs, overload, lost replies, deadlines, several processes): how much is done, in
           how much of the best possible time, with how many of the fewest possible requests?
           RQ = 100 is the oracle; see docs/simulator.md for every metric.
Baseline   The libraries that people use instead, each through its real package on a virtual
           clock, in its recommended configuration and told not to give up (`_peers`). The same
           seeds for everybody: some kept, some drawn anew in every run and printed, so that
           `--fresh` can repeat it. Peers' results are kept between runs (`_peer_cache`).
Claim      Whatever any peer completes is completed, with no duplicate, no loss and no violation;
           RQ is the best of all in every scenario; its geometric mean is at least 80, and 85 told
           not to give up (goal 98), the worst at least 55; the backlog of an overload is gone
           within 1.2 times the least time in which all jobs can be done, with a peak below 1.5
           times what is offered, and goodput back no later than without any retries. One
           exception has a name and a reason: `_BELIEVED`. R-X5: jitter removes 73 % of herds,
           one layer with a budget 86 % of a storm. A broken claim exits 1; a quick run judges the
           same claims in nine scenarios beside two peers.
Run        python bench/recovery.py [--quick] [--json FILE] [--seeds 0:2] [--fresh 77,88]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import RESULTS, Row, machine, table, verdict_lines, write
from _peer_cache import PeerCache
from _peers import PEERS, virtual
from _recovery_page import update
from _recovery_plot import draw

from mulligan import Exponential, Gate, Policy, Rule
from mulligan.core.failure import Kind
from mulligan.sim.compare import run
from mulligan.sim.engine import simulate
from mulligan.sim.metrics import geometric_mean
from mulligan.sim.policies import DEFAULT, NO_RETRIES, PATIENT, Guarded
from mulligan.sim.scenario import FaultPeriod, Jobs, Scenario
from mulligan.sim.scenario_file import find_scenario, shipped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mulligan.sim.engine import Clients, Contender, PolicyContext
    from mulligan.sim.server import SimulatedJob

# Mulligan's guards are improved while kept seeds are looked at; fresh ones are beyond these.
_KEPT, _FRESH, _FROM, _TO = (0, 1), 1, 10_000, 1_000_000

PAGE = Path(__file__).parents[1] / "docs" / "recovery.md"

OURS, OURS_PATIENT = "Mulligan", "Mulligan, patient"
_NONE = "no retries"

_PEERS = {peer.name: peer for peer in PEERS}

CONTENDERS: dict[str, Contender] = {
    OURS: DEFAULT,
    OURS_PATIENT: PATIENT,
    _NONE: NO_RETRIES,
    **_PEERS,
}

# A quick run looks at what is cheap and tells something: a scenario a family, two peers.
_QUICK_PEERS = ("stamina", "botocore")
_QUICK = (
    *("s1-bucket-headers", "s2-window-retry-after", "s2-window-bare", "s6-outage-20s"),
    *("s7-503-retry-after", "s9-brownout-30", "s10-one-second", "s10-overload"),
    "s11-lost-replies",
)

# A server that always says an hour. A false hour and an honest one look alike, and a request into
# an honest one is a violation that some services punish, so a guard that was told nothing believes
# it: it counts in the mean, and `overstated` measures the guard that was told.
_BELIEVED = "s15c-huge"
_TOLD = Guarded("told", {"gate": Gate(horizon=30)})

# How much better another must be to be ahead: less is luck.
_TIE = 0.5

# What every measurement keeps.
Found = dict[str, Any]


def measured(contender: str, scenario: str, seed: int) -> Found:
    """One contender in one scenario under one seed."""
    with virtual():
        each = run(find_scenario(scenario), CONTENDERS[contender], seed=seed)
    return {
        "contender": contender,
        "scenario": scenario,
        "seed": seed,
        "ran_away": each.ledger.has_run_away,
        **each.metrics.data(),
    }


def all_of(
    contenders: Sequence[str],
    scenarios: Sequence[str],
    seeds: Sequence[int],
    patient: Sequence[int],
    cache: PeerCache | None,
) -> list[Found]:
    """Everybody everywhere, on two processes a core: some runs take ten times as long as others.

    Peers that were told not to give up, which take longest, under the seeds `patient` alone. What
    is known of peers is kept as soon as it is known: a run that was stopped can be continued.
    """
    found: dict[tuple[str, str, int], Found] = {}
    due: list[tuple[str, str, int]] = []
    for seed in seeds:
        for name in contenders:
            peer = _PEERS.get(name)
            if peer and peer.is_patient and seed not in patient:
                continue
            for scenario in scenarios:
                known = cache.get(peer, scenario, seed) if cache and peer else None
                if known is None:
                    due.append((name, scenario, seed))
                else:
                    found[name, scenario, seed] = known
    # A seed after the other; within it those first that take longest.
    due.sort(key=lambda each: (seeds.index(each[2]), ", patient" not in each[0]))
    with ProcessPoolExecutor(2 * min(os.cpu_count() or 1, 4)) as pool:
        runs = {pool.submit(measured, *each): each for each in due}
        for number, each in enumerate(as_completed(runs), start=1):
            name = runs[each][0]
            found[runs[each]] = each.result()
            if cache and name in _PEERS:
                cache.put(_PEERS[name], each.result())
                cache.write()
            if sys.stderr.isatty():
                print(f"\r  {number} of {len(runs)} ", end="", file=sys.stderr, flush=True)
    order = ((name, each, seed) for seed in seeds for name in contenders for each in scenarios)
    return [found[each] for each in order if each in found]


class Results:
    """Measurements by contender and scenario."""

    def __init__(self, found: Sequence[Found]) -> None:
        self.found = found
        self.contenders = list(dict.fromkeys(each["contender"] for each in found))
        self.scenarios = list(dict.fromkeys(each["scenario"] for each in found))
        self._by: dict[tuple[str, str], list[Found]] = {}
        for each in found:
            self._by.setdefault((each["contender"], each["scenario"]), []).append(each)

    def of(self, contender: str, scenario: str) -> list[Found]:
        return self._by.get((contender, scenario), [])

    def quality(self, contender: str, scenario: str) -> float:
        return float(statistics.mean(each["quality"] for each in self.of(contender, scenario)))

    def completion(self, contender: str, scenario: str) -> float:
        return float(min(each["completion"] for each in self.of(contender, scenario)))

    def mean(self, contender: str) -> float:
        return geometric_mean(self.quality(contender, each) for each in self.scenarios)

    def worst(self, contender: str) -> tuple[float, str]:
        return min((self.quality(contender, each), each) for each in self.judged)

    @property
    def judged(self) -> list[str]:
        """The scenarios in which every guard is held to its claims, told nothing."""
        return [each for each in self.scenarios if each != _BELIEVED]

    def harm(self, contender: str, what: str) -> list[str]:
        """The scenarios in which `contender` did harm of this sort."""
        return [
            scenario
            for scenario in self.scenarios
            if any(each[what] for each in self.of(contender, scenario))
        ]

    def only(self, seeds: Sequence[int]) -> Results:
        return Results([each for each in self.found if each["seed"] in seeds])


def rivals(results: Results, ours: str) -> list[str]:
    """The peers in the configuration that `ours` is compared with."""
    is_patient = ours == OURS_PATIENT
    names = [peer.name for peer in PEERS if peer.is_patient == is_patient]
    return [name for name in names if name in results.contenders]


def completes(results: Results, ours: str) -> Row:
    behind = []
    for scenario in results.judged:
        best = max(results.completion(each, scenario) for each in rivals(results, ours))
        own = results.completion(ours, scenario)
        if best >= 1 and own < 1:
            behind.append(f"{scenario} {own:.3f}")
    return Row(
        question=f"{ours}: completion",
        baseline="any peer",
        claim="1.000 wherever a peer has 1.000",
        verdict="BROKEN" if behind else "held",
        found=f"less in {len(behind)} of {len(results.judged)}",
        why=", ".join(behind),
    )


def harmless(results: Results, ours: str) -> Row:
    found = {
        what: results.harm(ours, what) for what in ("duplicates", "lost", "violations", "has_hung")
    }
    words = [f"{what} in {', '.join(where)}" for what, where in found.items() if where]
    return Row(
        question=f"{ours}: duplicates, losses, violations, hangs",
        baseline="none",
        claim="none anywhere",
        verdict="BROKEN" if words else "held",
        found=f"{sum(map(len, found.values()))}",
        why="; ".join(words),
    )


def is_first(results: Results, ours: str) -> Row:
    behind = []
    for scenario in results.judged:
        best, who = max((results.quality(each, scenario), each) for each in rivals(results, ours))
        own = results.quality(ours, scenario)
        if own < best - _TIE:
            behind.append(f"{scenario} {own:.0f} ({who} {best:.0f})")
    return Row(
        question=f"{ours}: RQ in every scenario",
        baseline="the best peer there",
        claim="first",
        verdict="BROKEN" if behind else "held",
        found=f"first in {len(results.judged) - len(behind)} of {len(results.judged)}",
        why=", ".join(behind),
    )


def close(results: Results, ours: str, least: float) -> list[Row]:
    mean, (worst, where) = results.mean(ours), results.worst(ours)
    leader = max(rivals(results, ours), key=results.mean)
    return [
        Row(
            question=f"{ours}: geometric mean of RQ",
            baseline=f"{leader} {results.mean(leader):.0f}",
            claim=f"at least {least:g} (goal 98)",
            verdict="held" if mean >= least else "BROKEN",
            found=f"{mean:.1f}",
            numbers={"mean": mean},
        ),
        Row(
            question=f"{ours}: worst RQ",
            baseline=f"{leader} {results.worst(leader)[0]:.0f}",
            claim="at least 55",
            verdict="held" if worst >= 55 else "BROKEN",
            found=f"{worst:.1f} ({where})",
            numbers={"worst": worst},
        ),
    ]


def overload(results: Results, ours: str) -> Row:
    """Whether patience is paid for in storms.

    Without retries 40 % of the jobs are never done, and so leave no backlog. The least that a
    client needs which does all of them is T*, and what is sent in vain before the first timeout
    can be heard, at the rate that the server has to spare.
    """
    name = "s10-overload"
    scenario = find_scenario(name)
    jobs, queue = scenario.jobs, scenario.queue
    assert queue is not None
    own, calm = results.of(ours, name), results.of(_NONE, name)
    unheard = jobs.rate * jobs.timeout / (queue.rate - jobs.rate)
    least = statistics.mean(each["best_seconds"] for each in own) + unheard
    took = statistics.mean(each["seconds"] for each in own)
    peak = max(each["peak"] for each in own)
    lag, usual = (_lag(runs) for runs in (own, calm))
    is_held = took <= 1.2 * least and peak < 1.5 and lag <= usual
    return Row(
        question=f"{ours}: overload drains",
        baseline=f"all done, heard from timeouts alone: {least:.1f} s",
        claim="within 1.2 x, peak below 1.5 x, goodput back no later than without retries",
        verdict="held" if is_held else "BROKEN",
        found=f"{took / least:.2f} x, peak {peak:.2f} x",
        why=f"{results.completion(ours, name):.0%} done, without retries "
        f"{results.completion(_NONE, name):.0%}; 95 % of the goodput was back after {lag:.1f} s, "
        f"without retries after {usual:.1f} s",
        numbers={"seconds": took, "least": least, "peak": peak, "lag": lag, "usual_lag": usual},
    )


def _lag(runs: Sequence[Found]) -> float:
    """Mean seconds until 95 % of the goodput was back; infinity for never."""
    return statistics.mean(inf if each["lag"] is None else each["lag"] for each in runs)


def overstated(results: Results, seeds: Sequence[int]) -> Row:
    """The one scenario in which a guard must be told something: that the server overstates."""
    found = [run(find_scenario(_BELIEVED), _TOLD, seed=seed).metrics for seed in seeds]
    quality = statistics.mean(each.quality for each in found)
    done, harm = min(each.completion for each in found), sum(each.violations for each in found)
    peers = rivals(results, OURS) + rivals(results, OURS_PATIENT)
    best, who = max((results.quality(each, _BELIEVED), each) for each in peers)
    is_held = done >= 1 and not harm and quality >= max(55.0, best - _TIE)
    return Row(
        question=f"{OURS}, told that the server overstates: {_BELIEVED}",
        baseline=f"{who} {best:.0f}",
        claim="all done, no violation, RQ first and at least 55",
        verdict="held" if is_held else "BROKEN",
        found=f"RQ {quality:.1f}, {done:.0%} done",
        why=f"told nothing: RQ {results.quality(OURS, _BELIEVED):.1f}, it parks for the hour",
        numbers={"quality": quality, "completion": done},
    )


# R-X5: what jitter, one layer and a budget are worth

_HERD = Scenario(
    name="herd",
    jobs=Jobs(count=200),
    faults=(FaultPeriod(end=10.0),),
    horizon=600.0,
)


def _rules(jitter: Any) -> Policy:
    rule = Rule(attempts=10, backoff=Exponential(first=1, cap=30, jitter=jitter))
    return Policy(name=str(jitter), rules=dict.fromkeys((Kind.SERVER, Kind.OVERLOADED), rule))


def _alone(jitter: str) -> Guarded:
    """Retries with nothing shared: what a plain retry loop with this backoff does."""
    off = {"breaker": False, "gate": False, "tokens": False}
    return Guarded(jitter, {"policy": _rules(jitter), **off})


def _in_herds(contender: Contender, seed: int) -> int:
    """Repeated requests that a tenth of all agents sent within the same tenth of a second."""
    seen: set[int] = set()
    moments: Counter[int] = Counter()
    for request in simulate(_HERD, contender, seed=seed).requests:
        if request.job in seen:
            moments[int(request.sent_at * 10)] += 1
        seen.add(request.job)
    return sum(count for count in moments.values() if count >= _HERD.jobs.count / 10)


def herds(seeds: Sequence[int]) -> Row:
    plain = statistics.mean(_in_herds(_alone("none"), seed) for seed in seeds)
    jittered = statistics.mean(_in_herds(_alone("full"), seed) for seed in seeds)
    guarded = statistics.mean(_in_herds(DEFAULT, seed) for seed in seeds)
    saved = round(1 - jittered / max(plain, 1), 2)
    return Row(
        question="R-X5: retries in herds, by jitter",
        baseline=f"200 agents, 10 s outage, doubling without jitter: {plain:.0f}",
        claim="-73 % with full jitter",
        verdict="held" if saved >= 0.73 else "BROKEN",
        found=f"-{saved:.0%} ({jittered:.0f}); default guard {guarded:.0f}",
        numbers={"plain": plain, "jittered": jittered, "guarded": guarded},
    )


class _Layers:
    """Three layers of three attempts, as an SDK in a framework in a tool multiply them."""

    name = "three layers"

    def clients(self, settings: PolicyContext) -> Clients:  # noqa: ARG002 -- the seam's signature
        return self

    async def call(self, send: Callable[[], Awaitable[Any]], job: SimulatedJob) -> Any:  # noqa: ARG002 -- the seam's signature
        for attempt in range(27):
            try:
                return await send()
            except Exception:
                if attempt == 26:
                    raise
        raise AssertionError


def storm(seeds: Sequence[int]) -> Row:
    scenario = find_scenario("s10-overload")

    def mean(contender: Contender) -> tuple[float, float]:
        found = [run(scenario, contender, seed=seed).metrics for seed in seeds]
        extra = statistics.mean(each.requests - scenario.jobs.count for each in found)
        return extra, min(each.completion for each in found)

    (layers, _), (guarded, done) = mean(_Layers()), mean(DEFAULT)
    saved = 1 - max(guarded, 0) / layers
    return Row(
        question="R-X5: requests beyond the first in overload",
        baseline=f"three layers of three attempts: {layers:,.0f}",
        claim="-86 % with one layer, a budget and classification, and everything done",
        verdict="held" if saved >= 0.86 and done >= 1 else "BROKEN",
        found=f"-{saved:.0%} ({guarded:,.0f}), {done:.0%} done",
        numbers={"layers": layers, "guarded": guarded, "completion": done},
    )


def fix_loop() -> Row:
    return Row(
        question="R-X5: length of the fix loop",
        baseline="an agent that is not told what was wrong",
        claim="-40 %",
        verdict="NOT MEASURED",
        found="-",
        why="it needs a model that corrects itself",
    )


def report(results: Results, fresh: Results) -> str:
    """RQ of everybody everywhere; requests and time are in the JSON."""
    order = sorted(results.contenders, key=results.mean, reverse=True)
    means = table(
        ("", "RQ mean", "fresh seeds", "worst", "in", "all done in", "DUP in", "V in"),
        [
            (
                name,
                f"{results.mean(name):.1f}",
                f"{fresh.mean(name):.1f}" if name in fresh.contenders else "-",
                f"{results.worst(name)[0]:.1f}",
                results.worst(name)[1],
                f"{sum(results.completion(name, s) >= 1 for s in results.scenarios)}",
                f"{len(results.harm(name, 'duplicates'))}",
                f"{len(results.harm(name, 'violations'))}",
            )
            for name in order
        ],
    )
    plain = [name for name in order if not name.endswith(", patient")]
    cells = [(s, *(f"{results.quality(name, s):.0f}" for name in plain)) for s in results.scenarios]
    return f"{means}\n\n{table(('RQ', *plain), cells)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two seeds, nine scenarios, two peers")
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--seeds", metavar="LIST", help="other seeds than the kept ones: 0:2,7")
    parser.add_argument("--fresh", metavar="LIST", help="these, to repeat a run; empty for none")
    parser.add_argument(
        "--patient-peers", metavar="LIST", help="seeds for peers told not to give up; all if absent"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="measure peers anew that were measured before"
    )
    given = parser.parse_args()
    kept, fresh = _seeds(given)
    names = list(CONTENDERS)
    scenarios = list(shipped())
    if given.quick:
        scenarios = list(_QUICK)
        names = [OURS, OURS_PATIENT, _NONE, *_QUICK_PEERS]
        names += [f"{name}, patient" for name in _QUICK_PEERS]
    print(f"  kept seeds {_listed(kept)}; drawn anew, and again with: --fresh {_listed(fresh)}")
    cache = None if given.no_cache else PeerCache()
    seeds = [*kept, *fresh]
    patient = _unlisted(given.patient_peers) if given.patient_peers else seeds
    found = all_of(names, scenarios, seeds, patient, cache)
    results = Results(found)
    print(f"\n{report(results.only(kept), results.only(fresh))}\n")
    rows = [
        *(row for ours in (OURS, OURS_PATIENT) for row in _claims(results, ours)),
        *([overstated(results, seeds)] if _BELIEVED in results.scenarios else []),
        *(overload(results, each) for each in (OURS, OURS_PATIENT)),
        herds(kept[:1] if given.quick else kept),
        storm(kept[:1] if given.quick else kept),
        fix_loop(),
    ]
    print(verdict_lines(rows))
    is_kept = not (given.json or given.quick or given.seeds)
    target = RESULTS / "recovery.json" if is_kept else given.json
    if target is not None:
        packages = sorted({peer.package for peer in PEERS})
        result = {
            **_result(results, rows, kept, fresh, packages),
            "patient_peer_seeds": patient,
        }
        write(target, result)
        draw(results, target.with_suffix(".svg"))
        if is_kept:
            update(PAGE, result)
    return int(any(row.verdict == "BROKEN" for row in rows))


def _claims(results: Results, ours: str) -> list[Row]:
    return [
        completes(results, ours),
        harmless(results, ours),
        is_first(results, ours),
        *close(results, ours, 85 if ours == OURS_PATIENT else 80),
    ]


def _seeds(given: argparse.Namespace) -> tuple[list[int], list[int]]:
    """The kept seeds and the fresh ones."""
    kept = _KEPT[:1] if given.quick else _KEPT
    if given.fresh is not None:
        fresh = _unlisted(given.fresh) if given.fresh else []
    else:
        count = 1 if given.quick else _FRESH
        fresh = random.SystemRandom().sample(range(_FROM, _TO), count)
    return _unlisted(given.seeds) if given.seeds else list(kept), fresh


def _unlisted(text: str) -> list[int]:
    """``0:2,7`` → 0, 1, 2, 7."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def _listed(seeds: Sequence[int]) -> str:
    return ",".join(map(str, seeds))


def _result(
    results: Results,
    rows: Sequence[Row],
    kept: Sequence[int],
    fresh: Sequence[int],
    packages: Sequence[str],
) -> dict[str, Any]:
    return {
        "bench": "recovery",
        **machine(packages),
        "seeds": list(kept),
        "fresh_seeds": list(fresh),
        "quality": {
            name: {
                "mean": round(results.mean(name), 2),
                **{each: round(results.quality(name, each), 2) for each in results.scenarios},
            }
            for name in results.contenders
        },
        "verdicts": [row.data() for row in rows],
        "runs": results.found,
    }


if __name__ == "__main__":
    sys.exit(main())

"""What does a waiting agent cost?

Question   Agents wait behind a default guard until their target has room, or is up again: how
           often does each of them ask, how long does it take to enter the line, how much memory
           does it hold? And does the crowd get through in the time that the limit allows?
Baseline   The same scenarios with few agents; the ideal time T* of the scenario.
Claim      At any size at most 3 questions a request; in crowds of 1,000 and more at most 3 an
           agent, however many attempts it makes, and one more where processes share a limit, as
           these have no queue in common. A small crowd whose first requests are rejected needs
           two questions for each of the repeats. At most 3 kB and 30 µs to enter for an agent
           that waits, beyond what a bare task costs that waits; 100,000 agents are through a
           limit that states itself within 1.1 times T*. A broken claim exits 1.
Run        python bench/waiting.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from _measure import RESULTS, Row, machine, table, verdict_lines, write

import mulligan
from mulligan import testing
from mulligan.core.events import Held
from mulligan.sim.compare import resized, run
from mulligan.sim.engine import SimulatedAnswer
from mulligan.sim.policies import DEFAULT, Guarded
from mulligan.sim.scenario_file import find_scenario

if TYPE_CHECKING:
    from mulligan.sim.scenario import Scenario

# Limits that are stated and unstated, an outage, a wait for a stated time.
_SCENARIOS = (
    *("s1-bucket-headers", "s1-bucket-retry-after", "s2-window-retry-after", "s2-window-bare"),
    *("s4-concurrency", "s6-outage-20s", "s7-503-retry-after", "s16-processes-shared"),
)
_FULL, _QUICK = (200, 2_000, 10_000), (200, 1_000)
_CROWD = 1_000
_QUESTIONS, _BYTES, _MICROSECONDS, _STRETCH = 3.0, 3_000, 30.0, 1.1


def sized(name: str, agents: int) -> Scenario:
    """The scenario with a limit that grows with the crowd, so that the time stays the same."""
    scenario = find_scenario(name)
    times = agents / scenario.agents
    limits = tuple(
        replace(limit, quota=max(1, round(limit.quota * times))) for limit in scenario.limits
    )
    return resized(replace(scenario, limits=limits), agents=agents)


def questions(name: str, agents: int) -> tuple[float, float]:
    """Questions and requests an agent: every hold is an answer to one, every request another."""
    held = 0

    def count(event: object) -> None:
        nonlocal held
        held += isinstance(event, Held)

    found = run(sized(name, agents), Guarded("default", {"listeners": [count]})).metrics
    return (held + found.requests) / agents, found.attempts


def entering(agents: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bytes and microseconds of an agent that joins the line, and of a bare task that waits."""
    clock = testing.VirtualClock()

    async def waits(guard: mulligan.Guard | None) -> tuple[float, float]:
        never = asyncio.get_running_loop().create_future()

        async def send() -> SimulatedAnswer:
            await never
            return SimulatedAnswer()

        call = send if guard is None else (lambda: guard.acall(send))
        first = [asyncio.ensure_future(call()) for _ in range(200)]
        await asyncio.sleep(0)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        rest = [asyncio.ensure_future(call()) for _ in range(agents)]
        await asyncio.sleep(0)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        timed = []
        gc.disable()
        for _ in range(5):
            began = time.thread_time()
            more = [asyncio.ensure_future(call()) for _ in range(agents // 5)]
            await asyncio.sleep(0)
            timed.append((time.thread_time() - began) / len(more))
            rest += more
        gc.enable()
        for each in (*first, *rest):
            each.cancel()
        await asyncio.gather(*first, *rest, return_exceptions=True)
        return (after - before) / agents, min(timed) * 1e6  # the rest is other programs' noise

    with testing.virtual_time(clock):
        bare = clock.run(waits(None))
    with testing.virtual_time(clock):
        # It has answered nobody yet, so the first few go ahead and the others wait in line.
        guarded = clock.run(waits(mulligan.Guard("acme", effects="read")))
    return guarded, bare


def _asked(found: dict[tuple[str, int], tuple[float, float]], sizes: tuple[int, ...]) -> list[Row]:
    rows = []
    for size in sizes:
        here = {name: values for (name, at), values in found.items() if at == size}
        by_request = {name: asked / sent for name, (asked, sent) in here.items()}
        rows.append(_most(f"questions a request, {size:,} agents", by_request, _QUESTIONS))
        if size < _CROWD:
            continue
        for is_shared in (False, True):
            by_agent = {
                name: asked
                for name, (asked, _) in here.items()
                if (find_scenario(name).processes > 1) == is_shared
            }
            where = "several processes" if is_shared else "one process"
            question = f"questions an agent, {size:,} agents, {where}"
            rows.append(_most(question, by_agent, _QUESTIONS + is_shared))
    return rows


def _most(question: str, ratios: dict[str, float], most: float) -> Row:
    worst = max(ratios, key=lambda name: ratios[name])
    return Row(
        question=question,
        baseline=f"{len(ratios)} scenario{'s' if len(ratios) > 1 else ''}",
        claim=f"≤ {most:g}",
        verdict="held" if ratios[worst] <= most else "BROKEN",
        found=f"{ratios[worst]:.2f} ({worst})",
        numbers={"questions": round(ratios[worst], 3)},
    )


def _crowd(agents: int) -> list[Row]:
    began = time.process_time()
    found = run(sized("s1-bucket-headers", agents), DEFAULT).metrics
    spent = time.process_time() - began
    stretch = found.stretch if found.completion >= 1 else None
    is_held = stretch is not None and stretch <= _STRETCH
    return [
        Row(
            question=f"{agents:,} agents through one limit",
            baseline=f"T* = {found.best_seconds:.0f} s",
            claim=f"≤ {_STRETCH:g} x, all done",
            verdict="held" if is_held else "BROKEN",
            found="not all done" if stretch is None else f"{stretch:.3f} x",
            why=f"{spent:.0f} s of processor time, the simulated server's included",
            numbers={"stretch": stretch, "processor": round(spent, 1)},
        )
    ]


def _costs(agents: int) -> list[Row]:
    guarded, bare = entering(agents)
    size, took = guarded[0] - bare[0], guarded[1] - bare[1]
    return [
        Row(
            question="memory of an agent that waits",
            baseline="a task that waits for a future",
            claim=f"≤ {_BYTES / 1000:g} kB more",
            verdict="held" if size <= _BYTES else "BROKEN",
            found=f"{size / 1000:.2f} kB",
            why=f"{guarded[0] / 1000:.2f} kB with the task",
            numbers={"bytes": round(size)},
        ),
        Row(
            question="time to enter the line",
            baseline="a task that waits for a future",
            claim=f"≤ {_MICROSECONDS:g} µs more",
            verdict="held" if took <= _MICROSECONDS else "BROKEN",
            found=f"{took:.1f} µs",
            why=f"{guarded[1]:.1f} µs with the task; processor time of the thread",
            numbers={"microseconds": round(took, 2)},
        ),
    ]


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small crowds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    sizes = _QUICK if options.quick else _FULL
    found = {(name, size): questions(name, size) for size in sizes for name in _SCENARIOS}
    print("  questions an agent / requests an agent\n")
    cells = [
        (name, *(f"{found[name, size][0]:.2f} / {found[name, size][1]:.2f}" for size in sizes))
        for name in _SCENARIOS
    ]
    print(table(("scenario", *(f"{size:,} agents" for size in sizes)), cells))
    rows = [
        *_asked(found, sizes),
        *_costs(500 if options.quick else 5_000),
        *_crowd(2_000 if options.quick else 100_000),
    ]
    print(f"\n{verdict_lines(rows)}")
    file = options.json or (None if options.quick else RESULTS / "waiting.json")
    if file is not None:
        kept = {f"{name}, {size}": values for (name, size), values in found.items()}
        data = {
            "bench": "waiting",
            **machine(("mulligan",)),
            "is_quick": options.quick,
            "verdicts": [row.data() for row in rows],
            "questions_and_requests": kept,
        }
        write(file, data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

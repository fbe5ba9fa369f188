"""Does anything give way in a long run?

Question   Does a law break in thousands of random calls, does anything leak in 10^5 of them, does
           a backoff leave its bounds in 10^6 draws?
Baseline   The laws themselves: bench/_laws.py, and what was there before the first call.
Claim      No attempt sooner than a hint, past a bound, or after an effect that may have happened;
           the last error comes back; sync, asyncio and trio do the same (R-I1, E-A9, E-D3).
           Calls that fail together spend one budget (E-C2, E-C3). No task, timer, context or
           memory is left behind (E-D8). Every wait is finite and at most its cap (E-A2, E-A3).
           A broken claim exits 1.
Run        python bench/soak.py [--quick] [--seed N] [--only SCRIPT] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextvars
import gc
import logging
import random
import sys
import threading
import time
from collections import Counter
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import trio
from _laws import broken_laws, differences
from _measure import RESULTS, machine, table, write
from _scripts import DRIVERS, draw, play

import mulligan
from mulligan.core.backoff import Jitter
from mulligan.testing import VirtualClock, virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mulligan.core.backoff import Backoff

    Part = tuple[str, int, list[str]]

# Blocks of memory that a run may end with above its start: trio keeps up to 1,000 deadlines that
# are over, asyncio 100. A leak of one object a call would be 10^5.
_SLACK = 6_000


class Progress:
    """A line now and then, on stderr, so that nobody waits in the dark."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total = what, total
        self.shown = time.monotonic()
        print(f"{what}: {total:,} …", file=sys.stderr, flush=True)

    def at(self, number: int) -> None:
        if time.monotonic() - self.shown >= 5:
            self.shown = time.monotonic()
            share = f"{number:,} of {self.total:,}"
            print(f"{self.what}: {share}", file=sys.stderr, flush=True)


def sequences(seed: int, numbers: range) -> Iterator[Part]:
    """Random scripts on every driver that can play them."""
    progress, wrong, endings = Progress("scripts", len(numbers)), [], Counter[str]()
    attempts = calls = 0
    for number in numbers:
        progress.at(number - numbers.start)
        script = draw(random.Random(f"{seed}:{number}"))
        traces = {driver: play(script, driver) for driver in script.drivers}
        for driver, trace in traces.items():
            calls, attempts = calls + 1, attempts + len(trace.attempts)
            wrong += [f"script {number}, {driver}: {each}" for each in broken_laws(script, trace)]
        (first, reference), *others = traces.items()
        for driver, trace in others:
            wrong += [
                f"script {number}, {first} against {driver}: {each}"
                for each in differences(reference, trace)
            ]
        story = None if reference.error is None else mulligan.story(reference.error)
        endings[
            "answered" if reference.error is None else story.ending if story else "stopped"
        ] += 1
    print(f"endings: {dict(endings.most_common())}", file=sys.stderr)
    yield f"laws in random calls, {attempts:,} attempts", calls, wrong


# Calls that fail together


def shared_budgets(seed: int, count: int) -> Iterator[Part]:
    """Twenty calls that fail at once, in one task: together they spend its budget, not each."""
    progress, wrong = Progress("shared budgets", count), []
    for number in range(count):
        progress.at(number)
        dice = random.Random(f"{seed}:shared:{number}")
        budget = dice.uniform(1, 100)
        for driver in DRIVERS[1:]:
            spent = _spent_together(driver, budget, random.Random(dice.random()))
            if spent > budget + 1e-6:
                wrong.append(f"shared budget {number}, {driver}: {spent} of {budget}")
    yield "one budget for calls that fail together", count * 20 * 2, wrong


def _spent_together(driver: str, budget: float, luck: random.Random) -> float:
    clock = VirtualClock()

    class Dice:
        def roll(self) -> float:
            return luck.random()

    async def down() -> None:
        raise ConnectionRefusedError

    async def one() -> None:
        try:
            await mulligan.acall(down)
        except ConnectionRefusedError:
            return

    async def main() -> None:
        async with mulligan.task(budget=budget):
            if driver == "trio":
                async with trio.open_nursery() as nursery:
                    for _ in range(20):
                        nursery.start_soon(one)
            else:
                await asyncio.gather(*(one() for _ in range(20)))

    with virtual_time(clock, Dice()):
        if driver == "trio":
            trio.run(main, clock=clock.trio())
        else:
            clock.run(main())
    return sum(clock.sleeps)


# Leaks


def leaks(calls: int) -> Iterator[Part]:
    """What is left behind by calls that succeed, suspend, recover, are cut or give up."""
    for driver in DRIVERS:
        clock, progress = VirtualClock(), Progress(f"leaks, {driver}", calls)
        with virtual_time(clock):
            if driver == "sync":
                wrong = list(_left_by_plain(clock, calls, progress))
            elif driver == "trio":
                wrong = trio.run(_left_by_coroutines, clock, calls, progress, clock=clock.trio())
            else:
                wrong = clock.run(_left_by_coroutines(clock, calls, progress))
        yield f"leaks on {driver}", calls, [f"leaks, {driver}: {each}" for each in wrong]


class _Before:
    """What there was before; `left` says what has come to stay."""

    def __init__(self) -> None:
        self.context = dict(contextvars.copy_context())
        self.threads = threading.active_count()
        gc.collect()
        self.blocks = sys.getallocatedblocks()

    def left(self) -> Iterator[str]:
        gc.collect()
        grown = sys.getallocatedblocks() - self.blocks
        if grown > _SLACK:
            yield f"{grown} blocks of memory"
        if dict(contextvars.copy_context()) != self.context or mulligan.current() is not None:
            yield "context variables"
        if threading.active_count() != self.threads:
            yield f"{threading.active_count() - self.threads} threads"


def _fails(number: int) -> bool:
    """The first attempt of every fifth call, and every attempt of the call after it."""
    current = mulligan.current()
    return number % 5 == 1 or (number % 5 == 0 and (current is None or current.attempt == 1))


def _left_by_plain(clock: VirtualClock, calls: int, progress: Progress) -> Iterator[str]:
    def flaky(number: int) -> int:
        if _fails(number):
            raise ConnectionRefusedError
        return number

    calm, timed = mulligan.retry(flaky), mulligan.retry(deadline=60)(flaky)
    known = mulligan.retry(context=True, effects="read")(flaky)

    def batch(numbers: range) -> None:
        for number in numbers:
            progress.at(number)
            try:
                (calm, timed, known)[number % 3](number)
                with mulligan.task(budget=5):
                    calm(number)
            except ConnectionRefusedError:
                clock.sleeps.clear()

    batch(range(calls // 10))  # caches fill, modules load
    before = _Before()
    batch(range(calls // 10, calls))
    clock.sleeps.clear()
    yield from before.left()


async def _left_by_coroutines(clock: VirtualClock, calls: int, progress: Progress) -> list[str]:
    asleep = clock.asleep

    async def flaky(number: int) -> int:
        if _fails(number):
            raise ConnectionRefusedError
        if number % 5 == 2:
            await asleep(0)
        if number % 50 == 3:
            await asleep(90)  # cut, where there is a deadline
        return number

    calm, timed = mulligan.retry(flaky), mulligan.retry(deadline=60)(flaky)
    known = mulligan.retry(context=True, effects="read", timeout=30)(flaky)

    async def batch(numbers: range) -> None:
        for number in numbers:
            progress.at(number)
            try:
                await (calm, timed, known)[number % 3](number)
                async with mulligan.task(budget=5):
                    await timed(number)
            except (ConnectionRefusedError, TimeoutError):
                clock.sleeps.clear()

    await batch(range(calls // 10))  # caches fill, modules load
    tasks, timers = _tasks_and_timers()
    before = _Before()
    await batch(range(calls // 10, calls))
    clock.sleeps.clear()
    wrong = list(before.left())
    now_tasks, now_timers = _tasks_and_timers()
    if now_tasks != tasks:
        wrong.append(f"{now_tasks - tasks} tasks")
    if now_timers != timers:
        wrong.append(f"{now_timers - timers} timers")
    return wrong


def _tasks_and_timers() -> tuple[int, int]:
    if trio.lowlevel.in_trio_task():
        now = trio.lowlevel.current_statistics()
        return now.tasks_living, int(now.seconds_to_next_deadline < inf)
    loop: Any = asyncio.get_running_loop()
    return len(asyncio.all_tasks()), sum(not timer.cancelled() for timer in loop._scheduled)  # noqa: SLF001


# Draws


def draws(seed: int, count: int) -> Iterator[Part]:
    """Every shape with every jitter: finite, not negative, at most the cap, and still moving."""
    wrong = []
    shapes: tuple[Callable[..., Backoff], ...] = (
        mulligan.Exponential,
        mulligan.Linear,
        mulligan.Fixed,
        mulligan.Schedule,
    )
    pairs = [(shape, jitter) for shape in shapes for jitter in get_args(Jitter)]
    progress = Progress(f"draws, each of {len(pairs)} backoffs", count)
    for number, (shape, jitter) in enumerate(pairs):
        progress.at(number * count // len(pairs))
        dice = random.Random(f"{seed}:{number}")
        spread = {"additive": 0.5, "proportional": 0.3}.get(jitter, 0.0)
        backoff = shape(jitter=jitter, spread=spread)
        wrong += _bad_draws(backoff.delay, backoff.cap, dice, count, f"{backoff!r}")
    yield "draws of every backoff", count * len(pairs), wrong


def _bad_draws(
    delay: Callable[[int, float], float], cap: float, dice: random.Random, count: int, name: str
) -> list[str]:
    roll, bits = dice.random, dice.getrandbits
    for _ in range(count):
        # Attempts from 1 to 10^9, small ones most often.
        attempt, luck = 1 + (bits(30) >> bits(5)), roll()
        wait = delay(attempt, luck)
        if not (isfinite(wait) and 0 <= wait <= cap):
            return [f"{name}: {wait} after attempt {attempt}, roll {luck}"]
    return []


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few of each; keeps nothing")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other scripts")
    parser.add_argument("--only", type=int, metavar="SCRIPT", help="play this script alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    logging.getLogger("mulligan").setLevel(logging.CRITICAL)  # exhaustions by the thousand

    quick, seed = options.quick, options.seed
    began = time.monotonic()
    if options.only is not None:
        parts = list(sequences(seed, range(options.only, options.only + 1)))
    else:
        parts = [
            *sequences(seed, range(200 if quick else 12_000)),
            *shared_budgets(seed, 5 if quick else 300),
            *leaks(2_000 if quick else 100_000),
            *draws(seed, 1_000 if quick else 1_000_000),
        ]
    wrong = [each for _, _, found in parts for each in found]
    for each in wrong[:20]:
        print(f"BROKEN  {each}")
    if len(wrong) > 20:
        print(f"BROKEN  … and {len(wrong) - 20:,} more")
    rows = [
        (what, f"{count:,}", f"BROKEN, {len(found)} times" if found else "held")
        for what, count, found in parts
    ]
    print(f"\nSoak, seed {seed}, {time.monotonic() - began:.0f} s\n")
    print(table(("question", "calls or draws", "verdict"), rows))

    file = options.json
    if file is None and not quick and options.only is None:
        file = RESULTS / "soak.json"
    if file is not None:
        data = {
            "bench": "soak",
            **machine(("mulligan", "trio")),
            "seed": seed,
            "seconds": round(time.monotonic() - began),
            "parts": [
                {"question": what, "count": count, "broken": found[:20]}
                for what, count, found in parts
            ],
        }
        write(file, data)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

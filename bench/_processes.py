"""A crowd in real time: agents in one process or several, a limiter behind a socket.

The parent is the server: every line that a worker sends is a request, answered half a round trip
after it was counted. The workers have the product's own admission on the product's own store.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from math import inf
from typing import TYPE_CHECKING, Any

from _crowd import Run, tell

from mulligan.calls.clock import REAL
from mulligan.calls.wakeups import await_turn
from mulligan.core.admission import Admitted, Hold
from mulligan.shared.admission import CallAdmission
from mulligan.shared.gate.client import GateAdmission
from mulligan.shared.gate.gate import GATE, Gate
from mulligan.sim.limiters import LimiterAnswer
from mulligan.stores.cache import FailOpen
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

if TYPE_CHECKING:
    from _limiters import Drawn

__all__ = ("crowd", "work")

# Seconds from sending a request to having its answer. Limits are scaled to seconds, so is this.
TRIP = 0.02


async def _served(limiter: Drawn, jobs: int, starts: list[Any]) -> tuple[int, int, float, int]:
    """Answer requests until `jobs` are done.

    How many were, in how many requests and seconds, and how often a worker lost its store.
    """
    began, requests, done = 0.0, 0, 0
    over = asyncio.Event()

    async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal requests, done
        await asyncio.sleep(TRIP / 2)
        requests += 1
        said = limiter.ask(time.monotonic() - began)
        await asyncio.sleep(TRIP / 2)
        writer.write(json.dumps([line.decode().strip(), said._asdict()]).encode() + b"\n")
        done += said.passes
        if done == jobs:
            over.set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way = set()
        while line := await reader.readline():
            task = asyncio.create_task(answer(line, writer))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        workers = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, *start, str(port)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for start in starts
        ]
        try:
            for worker in workers:  # each says when it has loaded
                assert worker.stdout is not None
                await asyncio.wait_for(worker.stdout.readline(), 30)
            began = time.monotonic()
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write(b"go\n")
            await asyncio.wait_for(over.wait(), 120)
            took = time.monotonic() - began
            said = await asyncio.gather(*(worker.communicate() for worker in workers))
        finally:
            for worker in workers:
                if worker.returncode is None:
                    worker.kill()
                    await worker.wait()
    return done, requests, took, sum(int(out or 0) for out, _ in said)


def crowd(
    file: str, url: str, limiter: Drawn, *, jobs: int, processes: int, reads: bool
) -> tuple[Run, int]:
    """`jobs` agents in `processes`, all on the store at `url`; and how often that was down."""
    target = f"gate-{random.randrange(1 << 40):x}"
    share = [jobs // processes + (number < jobs % processes) for number in range(processes)]
    starts = [(file, "work", url, target, str(count), str(int(reads))) for count in share]
    done, requests, took, downs = asyncio.run(_served(limiter, jobs, starts))
    return Run(jobs, done, requests, took, limiter.ideal(jobs) + 2 * TRIP), downs


async def _agents(url: str, target: str, count: int, port: int, *, reads: bool) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    downs: list[object] = []
    store, clock = FailOpen(open_store(url).state, downs.append), REAL.clock
    settings = Gate(scout=reads)
    gate = GateAdmission(Key(target, "gate"), settings, roll=random.random, shared=store)
    waiting: dict[str, asyncio.Future[LimiterAnswer]] = {}

    async def hear() -> None:
        while line := await reader.readline():
            name, said = json.loads(line)
            waiting.pop(name).set_result(LimiterAnswer(**said))

    async def agent(name: str) -> None:
        waiter = CallAdmission(gate.waiting, None, gate)
        while True:
            asked = waiter.enter(1, now=clock.now(), wall=clock.wall())
            if isinstance(asked, Hold):
                await await_turn(clock, asked, lambda: inf)
                continue
            assert isinstance(asked, Admitted)
            waiting[name] = asyncio.get_running_loop().create_future()
            writer.write(f"{name}\n".encode())
            answer = await waiting[name]
            tell(waiter, asked.ticket, answer, clock.now(), clock.wall(), reads=reads)
            if answer.passes:
                return

    store.peek(Key(target, "gate"), GATE)  # opened before the gun
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    hearing = asyncio.create_task(hear())
    await asyncio.gather(*(agent(str(number)) for number in range(count)))
    hearing.cancel()
    writer.close()
    print(sum(trouble is not None for trouble in downs), flush=True)


def work(url: str, target: str, count: str, reads: str, port: str) -> None:
    """One worker's part, in a process of its own."""
    asyncio.run(_agents(url, target, int(count), int(port), reads=reads == "1"))

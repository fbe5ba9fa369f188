"""Does the fault server itself fail when hundreds of clients stream at once?

Question   500 clients stream at the same time, every event on its way for 20 ms: does any of them
           see an error that the script did not order? And with 2000?
Baseline   One client, the same stream, the same server.
Claim      No error but those that were ordered, each of them seen by exactly one client; the
           median stream of 500 clients takes less than 10 times as long as the lone one.
           A failing claim exits 1.
Run        python bench/faults.py
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from urllib.request import urlopen

BODY = json.dumps({"model": "m", "stream": True, "messages": ["hi"]}).encode()
HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY)
LAST = b"0\r\n\r\n"


@dataclass
class Round:
    """What the clients of one round saw."""

    clients: int
    times: list[float] = field(default_factory=list)
    complete: int = 0
    cut: int = 0
    errors: list[str] = field(default_factory=list)
    most: int = 0
    now: int = 0


async def stream(port: int, seen: Round, start: asyncio.Event) -> None:
    """One client: connect, wait for the others, stream once."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        seen.errors.append(f"connect: {error!r}")
        return
    seen.now += 1
    seen.most = max(seen.most, seen.now)
    if seen.now + len(seen.errors) == seen.clients:
        start.set()
    await start.wait()
    began, got = time.perf_counter(), b""
    try:
        writer.write(HEAD + BODY)
        while not got.endswith(LAST):
            piece = await reader.read(65536)
            if not piece:
                raise ConnectionResetError  # an end before the last chunk is a cut, too
            got += piece
    except OSError:
        is_good = got.startswith(b"HTTP/1.1 200 ") and b"message_start" in got
        if is_good and b"message_stop" not in got:
            seen.cut += 1
        else:
            seen.errors.append(f"after {len(got)} bytes")
    else:
        if got.startswith(b"HTTP/1.1 200 ") and b"message_stop" in got:
            seen.complete += 1
        else:
            seen.errors.append(got[:80].decode("latin-1"))
    finally:
        seen.now -= 1
        seen.times.append(time.perf_counter() - began)
        writer.close()


async def crowd(port: int, clients: int) -> Round:
    """All clients are connected before the first one asks."""
    seen, start = Round(clients), asyncio.Event()
    await asyncio.gather(*(stream(port, seen, start) for _ in range(clients)))
    return seen


def ordered(url: str) -> int:
    """How many streams the server was told to break so far."""
    with urlopen(f"{url}/_ledger", timeout=10) as response:  # noqa: S310 -- loopback
        outcomes: dict[str, int] = json.load(response)["totals"]["outcomes"]
    return sum(count for name, count in outcomes.items() if name.startswith("drop"))


def main() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    argv = [sys.executable, "-m", "mulligan", "faults", "drop(4):0.1, drip(20ms)"]
    with subprocess.Popen(
        [*argv, "--port", "0", "--seed", "7", "--json"], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        # Its lines must be read, or the pipe fills up and the server waits for us.
        drain = threading.Thread(target=server.stdout.read)
        drain.start()
        try:
            rounds = measure(url, (1, 500, 500, 500, 2000))
        finally:
            server.terminate()
            server.wait(10)
            drain.join(10)
    lone = statistics.median(rounds[0][0].times)
    is_kept = True
    print("clients  at once  complete  broken  ordered  unasked  median     p99   slowest")
    for seen, told in rounds:
        times = sorted(seen.times)
        p99 = times[int(len(times) * 0.99) - 1] if len(times) > 1 else times[0]
        median = statistics.median(times)
        print(
            f"{seen.clients:7}  {seen.most:7}  {seen.complete:8}  {seen.cut:6}  {told:7}"
            f"  {len(seen.errors):7}  {median:5.2f}s  {p99:5.2f}s  {times[-1]:6.2f}s"
        )
        is_kept &= not seen.errors and seen.cut == told and seen.most == seen.clients
        is_kept &= seen.clients != 500 or median < 10 * lone
        for error in sorted(set(seen.errors))[:5]:
            print(f"         {error}")
    print("claim kept" if is_kept else "claim BROKEN")
    return 0 if is_kept else 1


def measure(url: str, sizes: tuple[int, ...]) -> list[tuple[Round, int]]:
    """Each round, with how many of its streams the script broke."""
    port = int(url.rpartition(":")[2])
    rounds, before = [], 0
    for clients in sizes:
        seen = asyncio.run(asyncio.wait_for(crowd(port, clients), 60))
        after = ordered(url)
        rounds.append((seen, after - before))
        before = after
    return rounds


if __name__ == "__main__":
    sys.exit(main())

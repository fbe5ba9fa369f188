"""Does the fault server itself fail when hundreds of clients stream at once?

Question   500 clients stream at the same time, every event on its way for 20 ms: does any of them
           see an error that the script did not order? And 2000?
Baseline   What the script ordered, by the server's own ledger; for the time, one client alone with
           the same stream and the same server.
Claim      No error but those that were ordered, each of them seen by exactly one client, with all
           clients connected at once; the median stream of 500 clients takes at most 10 times as
           long as the lone one. A broken claim exits 1.
Run        python bench/faults.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from _measure import RESULTS, Row, machine, table, verdict_lines, write

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = json.dumps({"model": "m", "stream": True, "messages": ["hi"]}).encode()
HEAD = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(BODY)
LAST = b"0\r\n\r\n"

# Every event takes 20 ms, and one stream in ten breaks after four of them.
SCRIPT = "drop(4):0.1, drip(20ms)"

# The lone client comes first: it is what the others are held against.
FULL, QUICK = (1, 500, 500, 500, 2000), (1, 50)
CROWD, LIMIT = 500, 10.0


@dataclass
class Round:
    """What the clients of one round saw, and what the script had ordered for them."""

    clients: int
    ordered: int = 0
    times: list[float] = field(default_factory=list)
    complete: int = 0
    cut: int = 0
    errors: list[str] = field(default_factory=list)
    most: int = 0
    now: int = 0

    def start_if_all_came(self, start: asyncio.Event) -> None:
        if self.now + len(self.errors) == self.clients:
            start.set()

    @property
    def is_as_ordered(self) -> bool:
        return not self.errors and self.cut == self.ordered and self.most == self.clients

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        return sorted(self.times)[max(0, int(len(self.times) * 0.99) - 1)]


async def stream(port: int, seen: Round, start: asyncio.Event) -> None:
    """One client: connect, wait for the others, stream once."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        seen.errors.append(f"connect: {error!r}")
        seen.start_if_all_came(start)
        return
    seen.now += 1
    seen.most = max(seen.most, seen.now)
    seen.start_if_all_came(start)
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


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The address of a fault server in a process of its own."""
    argv = [sys.executable, "-m", "mulligan", "faults", SCRIPT, "--port", "0", "--seed", "7"]
    with subprocess.Popen([*argv, "--json"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        # Its lines must be read, or the pipe fills up and the server waits for us.
        drain = threading.Thread(target=server.stdout.read)
        drain.start()
        try:
            yield url
        finally:
            server.terminate()
            server.wait(10)
            drain.join(10)


def measure(url: str, sizes: tuple[int, ...]) -> list[Round]:
    """A round a size, one after the other."""
    port = int(url.rpartition(":")[2])
    rounds, before = [], 0
    for clients in sizes:
        print(f"measuring: {clients} at once …", file=sys.stderr)
        seen = asyncio.run(asyncio.wait_for(crowd(port, clients), 60))
        after = ordered(url)
        seen.ordered, before = after - before, after
        rounds.append(seen)
    return rounds


def judge(rounds: list[Round]) -> list[Row]:
    """A row about the errors of every size; where it was measured, one about its time."""
    lone, rows = rounds[0].median, []
    for clients in dict.fromkeys(seen.clients for seen in rounds):
        same = [seen for seen in rounds if seen.clients == clients]
        unasked = [error for seen in same for error in seen.errors]
        rows.append(
            Row(
                question=f"errors, {clients} at once" if clients > 1 else "errors, one client",
                baseline="what was ordered",
                claim="those, and no others",
                verdict="held" if all(seen.is_as_ordered for seen in same) else "BROKEN",
                found=f"{sum(seen.cut for seen in same)} of {sum(seen.ordered for seen in same)} "
                f"ordered, {len(unasked)} others",
                why="; ".join(sorted(set(unasked))[:5]),
            )
        )
        if clients == 1:
            continue
        ratio = statistics.median(seen.median for seen in same) / lone
        is_claimed = clients == CROWD
        rows.append(
            Row(
                question=f"time, {clients} at once",
                baseline="one client",
                claim=f"≤ {LIMIT:.1f} x" if is_claimed else "none",
                verdict=("held" if ratio <= LIMIT else "BROKEN") if is_claimed else "reported",
                found=f"{ratio:.2f} x",
                numbers={"ratio": round(ratio, 3), "limit": LIMIT if is_claimed else None},
            )
        )
    return rows


def _line(seen: Round) -> tuple[str, ...]:
    counts = (seen.clients, seen.most, seen.complete, seen.cut, seen.ordered, len(seen.errors))
    times = (seen.median, seen.p99, max(seen.times))
    return (*(f"{count:7}" for count in counts), *(f"{took:6.2f}s" for took in times))


def _data(seen: Round) -> dict[str, object]:
    return {
        "clients": seen.clients,
        "complete": seen.complete,
        "cut": seen.cut,
        "ordered": seen.ordered,
        "others": len(seen.errors),
        "seconds": {
            "median": round(seen.median, 3),
            "p99": round(seen.p99, 3),
            "slowest": round(max(seen.times), 3),
        },
    }


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="50 clients; keeps nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    with serving() as url:
        rounds = measure(url, QUICK if options.quick else FULL)
    rows = judge(rounds)
    names = ("clients", "at once", "whole", "broken", "ordered", "others")
    print(f"\nStreams under {SCRIPT!r}\n")
    print(table((*names, "median", "p99", "slowest"), map(_line, rounds)))
    print("\nVerdicts\n")
    print(verdict_lines(rows))

    file = options.json or (None if options.quick else RESULTS / "faults.json")
    if file is not None:
        data = {
            "bench": "faults",
            **machine(("mulligan",)),
            "script": SCRIPT,
            "verdicts": [row.data() for row in rows],
            "rounds": [_data(seen) for seen in rounds],
        }
        write(file, data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

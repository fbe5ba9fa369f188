"""What do the real programs make of each fault without `mulligan run`?

The same programs and faults as in runs.py, started bare: for comparison. A program has recovered if
it exits with 0, prints an answer and has run its tool as often as it was asked to. One that has
not ended within the limit counts as hung; `mulligan run --idle` stops it after 20 s there.

    python tests/real/bare.py FOLDER [--only claude,codex] [--fault hang] [--limit 60]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from resume import ARGV, environment
from runs import FAULTS, PROGRAMS, finish

from mulligan.core.duration import duration_text
from mulligan.testing import FaultServer

# What passes by itself; the other faults are meant to end a run.
RECOVERABLE = tuple(name for name, fault in FAULTS.items() if fault.ends == "well")


class Bare(NamedTuple):
    """One program under one fault, without Mulligan."""

    program: str
    fault: str
    outcome: str
    code: int | None
    requests: int
    took: float


def start(folder: Path, program: str, name: str, limit: float) -> Bare:
    fault = FAULTS[name]
    made = Path(tempfile.mkdtemp(prefix="mulligan-bare-"))
    try:
        with FaultServer(fault.script) as server:
            work = made / "work"
            work.mkdir()
            env = environment(program, made, server, server.url)
            if program == "claude" and fault.is_plan:
                del env["ANTHROPIC_API_KEY"]
                env |= server.env("claude-plan")
            command = [str(folder / "node_modules/.bin" / program), *ARGV[program]]
            began = time.monotonic()
            with (made / "out").open("w+b") as out, (made / "err").open("w+b") as err:
                code = finish(command, work, env, (out.fileno(), err.fileno()), limit)
            took = time.monotonic() - began
            requests = server.totals.requests
        ran = work / "ran.txt"
        effects = len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0
        is_well = code == 0 and (made / "out").stat().st_size and effects == fault.effects
        outcome = "hung" if code is None else "recovered" if is_well else "failed"
        return Bare(program, name, outcome, code, requests, took)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--fault", action="append", choices=RECOVERABLE, help="only this one")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each program")
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    pairs = [(p, f) for p in given.only.split(",") for f in given.fault or RECOVERABLE]
    totals: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(given.at_once) as pool:
        for each in pool.map(lambda p: start(given.folder, p[0], p[1], given.limit), pairs):
            totals[each.program, each.outcome] += 1
            took = duration_text(round(each.took))
            sys.stdout.write(
                f"| {each.program} | {each.fault} | {each.outcome} | "
                f"{'' if each.code is None else each.code} | {each.requests} | {took} |\n"
            )
            sys.stdout.flush()
    for (program, outcome), count in sorted(totals.items()):
        sys.stdout.write(f"{program}: {outcome} {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

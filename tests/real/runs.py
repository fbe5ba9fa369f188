"""Does `mulligan run` bring the real programs through each fault?

Each program is started once under `mulligan run` against each fault, with a home, a journal and a
server of its own. What came of it is read from three sides: the exit code, the run's journal, and
the ledger of the server. It must hold that no effect happens twice, that nobody asks inside a
closed window, that a session is resumed and not started anew, that no run is done without an
answer, and that it ends as the design says. With ``--write`` the lines replace those of the
same program and fault in the page.

    python tests/real/runs.py FOLDER [--only claude] [--fault hang] [--limit 300] [--write]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from resume import ARGV, environment
from rich.console import Console
from rich.table import Table
from runs_page import HEADS, PAGE, Row, kept, write

from mulligan.core.duration import duration_text
from mulligan.core.redaction import presentable
from mulligan.faults.ledger import LedgerEntry
from mulligan.run.journal.state import RunState
from mulligan.run.journal.store import RunStore
from mulligan.testing import FaultServer

TOOL = "shell(echo ran >> ran.txt)"
PROGRAMS = ("claude", "codex", "gemini", "opencode", "qwen", "copilot", "pi")

# The programs start slowly where many things run, and print nothing until they have: a bound that
# is meant for a hang must be longer than a start.
IDLE = "20s"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong, with what must come of it.

    Args:
        script: What the server does.
        ends: ``well``: it recovers; ``own``: the program's own code; ``later``: 75.
        effects: How often the tool runs.
        options: What `mulligan run` is told beside.
        is_plan: Whether it is met by who is logged in to a plan.
        answer: What stdout must have, and nothing else, if it ends well.
        programs: The programs that it is for.
        untimed: Those that do not pass on when it ends: their runs are parked, not over.
    """

    script: str
    ends: Literal["well", "own", "later"] = "well"
    effects: int = 0
    options: tuple[str, ...] = ()
    is_plan: bool = False
    answer: str = ""
    programs: tuple[str, ...] = PROGRAMS
    untimed: tuple[str, ...] = ("gemini",)


# A model that talks about a limit has not met one.
QUOTED = "You've hit your session limit, resets 3am (UTC)"

FAULTS = {
    "none": Fault(script=f"{TOOL},ok", effects=1),
    "429 twice": Fault(script="429(retry-after=2)x2,ok"),
    "plan limit for 20 s": Fault(script="plan(20s),ok", is_plan=True),
    "tool, then plan limit": Fault(script=f"{TOOL},plan(20s),ok", effects=1, is_plan=True),
    "overload for 15 s": Fault(script="0-15s:overloaded,ok"),
    "resets for 10 s": Fault(script="0-10s:reset,ok"),
    "hang": Fault(script="hang,ok", options=("--idle", IDLE)),
    "tool, then hang": Fault(script=f"{TOOL},hang,ok", effects=1, options=("--idle", IDLE)),
    "stalled stream": Fault(script="stall,ok", options=("--idle", IDLE)),
    "truncated stream": Fault(script="truncatex2,ok"),
    "truncated for ever": Fault(script="truncate", ends="own", options=("--attempts", "3")),
    "401": Fault(script="401", ends="own"),
    "billing": Fault(script="billing", ends="own"),
    "context too long": Fault(script="context", ends="own"),
    "plan limit for 5 h": Fault(
        script="plan(5h)",
        ends="later",
        options=("--horizon", "1h", "--park", "exit"),
        is_plan=True,
    ),
    "answer that quotes a limit": Fault(script=f'ok("{QUOTED}")', answer=QUOTED),
    # Codex, opencode and Qwen's client sleep without a word.
    "429 for 5 h": Fault(
        script="429(retry-after=18000)",
        ends="later",
        options=("--horizon", "1h", "--park", "exit"),
        programs=("claude", "gemini"),
        untimed=("claude",),
    ),
}

# They try again by themselves, without an option that bounds it: that they meet a plan's limit is
# seen when they give up. Each start of ours must be outside the window all the same.
UNBOUNDED = ("opencode", "qwen", "copilot", "pi")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One program under one fault."""

    program: str
    fault: str
    code: int | None
    took: float
    requests: int
    early: int
    started_early: int
    effects: int
    state: RunState | None
    said: str
    printed: str

    @property
    def outcome(self) -> str:
        return "killed" if self.code is None or self.state is None else self.state.status

    @property
    def goes_on(self) -> str:
        """How the attempts after the first were made."""
        if self.state is None or self.state.attempts < 2:
            return ""
        return ", ".join(dict.fromkeys(each.how for each in self.state.begun[1:]))

    @property
    def row(self) -> Row:
        state = self.state
        cost = None if state is None else state.cost
        tokens = None if state is None else state.tokens
        spent = f"${cost:.2f}" if cost is not None else f"{tokens} tokens" if tokens else ""
        return Row(
            program=self.program,
            fault=self.fault,
            outcome=self.outcome,
            exit="" if self.code is None else str(self.code),
            requests=str(self.requests),
            early=str(self.early),
            attempts="" if state is None else str(state.attempts),
            goes_on=self.goes_on,
            effects=str(self.effects),
            spent=spent,
            took=duration_text(round(self.took)),
        )

    def wrongs(self) -> list[str]:
        """What should have been otherwise."""
        fault, state = FAULTS[self.fault], self.state
        if state is None or self.code is None:
            return ["it did not end in time"]
        found = [*self._ending(state), *self._sessions(state)]
        if state.status == "done" and not self.printed.strip():
            found.append("done without an answer")
        if fault.answer and self.printed.strip() != fault.answer:
            found.append(f"stdout has {presentable(self.printed, 80)!r}")
        if self.effects != fault.effects:
            found.append(f"{self.effects} effects instead of {fault.effects}")
        if self.started_early:
            found.append(f"{self.started_early} attempts inside a closed window")
        if self.early and self.program not in UNBOUNDED:
            found.append(f"{self.early} requests inside a closed window")
        return found

    def _ending(self, state: RunState) -> Iterator[str]:
        last = state.ended[-1]
        code, status = {
            "well": (0, "done"),
            "later": (75, "waiting" if self.program in FAULTS[self.fault].untimed else "limited"),
            "own": (1 if last.stopped else last.code or 1, "failed"),
        }[FAULTS[self.fault].ends]
        if (self.code, state.status) != (code, status):
            yield f"exit {self.code}, {state.status} instead of exit {code}, {status}"
        if state.is_torn:
            yield "its last attempt has no end in the journal"

    @staticmethod
    def _sessions(state: RunState) -> Iterator[str]:
        """A session goes on, unless the program says that it kept none."""
        for before, begun in zip(state.ended, state.begun[1:], strict=False):
            if begun.how != "resume" and not before.is_lost and before.session:
                yield f"attempt {begun.attempt} began anew; there was a session"


def run(folder: Path, program: str, name: str, limit: float, keep: Path | None) -> Run:
    fault = FAULTS[name]
    made = Path(tempfile.mkdtemp(prefix="mulligan-run-"))
    try:
        with FaultServer(fault.script) as server:
            work = made / "work"
            work.mkdir()
            env = {
                **environment(program, made, server, server.url),
                "MULLIGAN_HOME": str(made / "mulligan"),
            }
            if program == "claude" and fault.is_plan:
                del env["ANTHROPIC_API_KEY"]
                env |= server.env("claude-plan")
            command = [
                *(sys.executable, "-m", "mulligan", "run", *fault.options, "--"),
                *(str(folder / "node_modules/.bin" / program), *ARGV[program]),
            ]
            began = time.monotonic()
            with (made / "out").open("w+b") as out, (made / "err").open("w+b") as err:
                code = finish(command, work, env, (out.fileno(), err.fileno()), limit)
            took = time.monotonic() - began
            totals, asked = server.totals, server.requests
            (made / "ledger").write_text("\n".join(f"{each}" for each in asked), encoding="utf-8")
        kept = RunStore(made / "mulligan")
        states = [state for _, state in kept.all()]
        kept.close()
        ran = work / "ran.txt"
        return Run(
            program=program,
            fault=name,
            code=code,
            took=took,
            requests=totals.requests,
            early=totals.early,
            started_early=started_early(states[0], asked) if states else 0,
            effects=len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0,
            state=states[0] if states else None,
            said=(made / "err").read_text(encoding="utf-8", errors="replace"),
            printed=(made / "out").read_text(encoding="utf-8", errors="replace"),
        )
    finally:
        if keep is not None:
            place = keep / f"{program}-{name}".replace(" ", "-").replace(",", "")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            ours = (made / name for name in ("out", "err", "ledger"))
            for each in (*made.glob("mulligan/runs/*/attempt-*"), *ours):
                if each.exists():
                    shutil.copy(each, place)
        shutil.rmtree(made, ignore_errors=True)


def started_early(state: RunState, asked: Sequence[LedgerEntry]) -> int:
    """How many attempts asked first inside a closed window."""
    firsts = (next((one for one in asked if one.at >= begun.at), None) for begun in state.begun)
    return len({one.number for one in firsts if one is not None and one.is_early})


def finish(
    command: list[str], work: Path, env: dict[str, str], to: tuple[int, int], limit: float
) -> int | None:
    """The exit code of the command; None if it had to be ended."""
    with subprocess.Popen(
        command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=to[0], stderr=to[1]
    ) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # it ends its program, too
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            return None


def told(each: Run, wrongs: list[str]) -> str:
    """What happened, for whoever looks for the reason."""
    lines = [f"{each.program}, {each.fault}: {'; '.join(wrongs)}"]
    lines += [
        f"  attempt {ended.attempt}: exit {ended.code}, {ended.stopped or 'by itself'}, "
        f"{ended.kind or 'well'} ({ended.reading}), then {ended.then}: {ended.because}"
        for ended in (() if each.state is None else each.state.ended)
    ]
    lines += [f"  | {presentable(line, 160)}" for line in each.said.splitlines()[-6:]]
    return "\n".join(lines) + "\n"


def table_of(rows: list[Row]) -> Table:
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*row)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this one")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each run")
    parser.add_argument("--keep", type=Path, help="keep the logs of each run in this folder")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--at-once", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    pairs = [
        (program, fault)
        for program in given.only.split(",")
        for fault in FAULTS
        if program in FAULTS[fault].programs and (not given.fault or fault in given.fault)
    ]
    wrong, runs = [], []
    with ThreadPoolExecutor(given.at_once) as pool:
        waiting = [pool.submit(run, given.folder, *pair, given.limit, given.keep) for pair in pairs]
        for each in waiting:
            done = each.result()
            runs.append(done)
            wrongs = done.wrongs()
            sys.stderr.write(f"{done.program}, {done.fault}: {'; '.join(wrongs) or 'right'}\n")
            if wrongs:
                wrong.append(told(done, wrongs))
    Console(width=180).print(table_of([each.row for each in runs]))
    if given.write:
        write(kept([each.row for each in runs]))
    sys.stderr.writelines(wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

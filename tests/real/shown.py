"""Does the user see what the program would have printed?

Each program runs twice, as the user wrote it and as its adapter starts it, once against a server
that is well and once against one that fails after a tool. What the program printed on stdout is
compared with what the reader showed in its place. Where the adapter adds nothing there is nothing
to compare.

    python tests/real/shown.py FOLDER [--only claude,codex] [--limit 90]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from resume import ARGV, ENDING, TOOL, attempt, environment
from rich.console import Console
from rich.table import Table

from mulligan.run.agents.adapter import Launch, LaunchRequest
from mulligan.run.agents.catalogue import recognise
from mulligan.testing import FaultServer


@dataclass(frozen=True)
class Pair:
    """What was printed, and what was shown instead."""

    program: str
    ending: str
    printed: str
    shown: str


def run(folder: Path, program: str, ending: str, limit: float, *, is_plain: bool) -> str:
    command = (str(folder / "node_modules/.bin" / program), *ARGV[program])
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made,
        FaultServer(f"{TOOL},{ending}") as server,
    ):
        work = Path(made, "work")
        work.mkdir()
        env = environment(program, Path(made), server, server.url)
        wish = LaunchRequest(session=str(uuid.uuid4()), environ=env)
        launch = Launch(argv=command) if is_plain else recognise(command).start(command, wish)
        # The address of the server stands in some errors, and differs.
        return attempt(launch, env, work, limit).shown.replace(str(server.port), "PORT")


def compare(folder: Path, program: str, ending: str, limit: float) -> Pair:
    printed = run(folder, program, ending, limit, is_plain=True)
    return Pair(program, ending, printed, run(folder, program, ending, limit, is_plain=False))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="claude,codex,gemini,opencode")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for each start")
    given = parser.parse_args()
    cases = [
        (program, ending)
        for program in given.only.split(",")
        for ending in ("ok", ENDING.get(program, "overloaded"))
    ]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(compare, given.folder, *case, given.limit) for case in cases]
        pairs = [each.result() for each in waiting]
    table = Table("program", "server", "printed", "shown", "same")
    for each in pairs:
        is_same = "yes" if each.printed == each.shown else "NO"
        table.add_row(each.program, each.ending, repr(each.printed), repr(each.shown), is_same)
    Console(width=200).print(table)
    wrong = [f"{each.program} ({each.ending})" for each in pairs if each.printed != each.shown]
    if wrong:
        sys.stderr.write(f"error: shown otherwise than printed: {', '.join(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

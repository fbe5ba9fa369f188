"""How far does a reader with a debugger walk?

Question   How many functions, files and switches of file lie on the way of one failing call, of
           one run until it is parked, and of one plan of two phases? How many gits does it start?
Baseline   The same walks before the house was built (commit bdb91ae), by this file.
Claim      At most half the switches of file of that commit, and fewer than 80 gits for a plan of
           three agents that work in trees of their own. A broken claim exits 1.
           A switch of file is a call of a function in another file than the last call of the same
           thread went to. Only functions of Mulligan count, not what runs once at an import, nor
           generated methods: those of dataclasses, which the baseline used, are compiled from
           text, those of records stand in core/record.py.
Run        python bench/walk.py [--quick] [--hops] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _measure import RESULTS, Row, machine, table, verdict_lines, write

import mulligan

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = str(Path(mulligan.__file__).parent) + os.sep
RECORDS = str(Path(mulligan.__file__).parent / "core" / "record.py")
AGENT = Path(__file__).parents[1] / "examples" / "scripted_agent.py"
GITS = 80


@dataclass
class Walk:
    """The functions of Mulligan that were called, by thread, in order."""

    calls: int = 0
    switches: int = 0
    gits: int = 0
    files: set[str] = field(default_factory=set)
    steps: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _last: dict[int, str] = field(default_factory=dict)

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        is_function = (
            frame.f_code.co_flags & CO_OPTIMIZED
        )  # neither a module nor the body of a class
        if event != "call" or not is_function or not name.startswith(PACKAGE) or name == RECORDS:
            return
        me = threading.get_ident()
        self.calls += 1
        self.files.add(name)
        if (last := self._last.get(me)) != name:
            self._last[me] = name
            if last is not None:
                self.switches += 1
                self.steps[f"{last[len(PACKAGE) :]} -> {name[len(PACKAGE) :]}"] += 1

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and Path(str(arguments[0])).name == "git":
            self.gits += 1


_current: list[Walk] = []


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    for each in _current:
        each.audit(event, arguments)


@contextmanager
def walking() -> Iterator[Walk]:
    walk = Walk()
    _current.append(walk)
    threading.setprofile(walk.profile)
    sys.setprofile(walk.profile)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        _current.remove(walk)


def second(walk: Callable[[Path], Walk]) -> Callable[[Path], Walk]:
    """Walk twice: the first time imports, and only the second one counts."""

    def walked(folder: Path) -> Walk:
        walk(folder / "first")
        return walk(folder / "second")

    return walked


def failing_call(folder: Path) -> Walk:
    """One 503 through a guard on SQLite, then its answer."""
    from mulligan.testing import virtual_time

    folder.mkdir()
    said = iter([503, 200] * 2)

    def ask() -> str:
        if next(said) == 503:
            raise Refused
        return "answer"

    with virtual_time():
        guard = mulligan.Guard("walk", store=f"sqlite:{folder / 'state.db'}", effects="read")
        guard.call(ask)  # which opens the store
        with walking() as walk:
            assert guard.call(ask) == "answer"
    return walk


class Refused(Exception):
    """An answer that says to come back."""

    status_code = 503


def command(*words: str) -> None:
    from mulligan.cli import main

    try:
        main(list(words))
    except SystemExit:
        return


def on_stage(folder: Path, script: str) -> None:
    """Be in a folder with the scripted agent on the PATH, and a home of our own."""
    program = folder / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    program.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    os.chdir(work)
    os.environ |= {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "MULLIGAN_HOME": str(folder / "home"),
        "SCRIPT": script,
        "SESSIONS": str(folder / "sessions"),
    }


def parked_run(folder: Path) -> Walk:
    """`mulligan run` with a limit of five hours: it is parked."""
    on_stage(folder, "limit:18000")
    with walking() as walk:
        command("run", "--park", "exit", "--", "claude", "-p", "x")
    return walk


PLAN = """
name = "walk"
git = "{git}"
[[phases]]
name = "first"
[[phases.agents]]
name = "one"
program = "claude"
prompt = "x"
[[phases.agents]]
name = "two"
program = "claude"
prompt = "x"
[[phases]]
name = "second"
[[phases.agents]]
name = "three"
program = "claude"
prompt = "x"
"""


def plan(folder: Path, mode: str) -> Walk:
    """A plan of two phases and three agents, each of which writes a file."""
    on_stage(folder, "write:a.txt ok")
    for words in (
        ["init", "-q"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.com"],
        ["commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *words], check=True)  # noqa: S607
    (folder / "plan.toml").write_text(PLAN.format(git=mode))
    with walking() as walk:
        command("run", "--cwd", str(Path.cwd()), str(folder / "plan.toml"))
    return walk


@dataclass(frozen=True, slots=True)
class Question:
    """One walk, and what it was at commit bdb91ae, measured by this file."""

    name: str
    walk: Callable[[Path], Walk]
    switches: int
    gits: int = 0


QUESTIONS = (
    Question("a 503 through a Guard on SQLite", failing_call, 233),
    Question("`mulligan run` until it is parked", parked_run, 570),
    Question("a plan of two phases", lambda folder: plan(folder, "off"), 2422),
    Question("the same in worktrees", lambda folder: plan(folder, "worktree"), 5198, 433),
)


def walked(number: int) -> None:
    """Walk in this process, and print what was seen as JSON."""
    sys.addaudithook(_audited)
    sys.stdout = sys.stderr
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        walk = second(QUESTIONS[number].walk)(Path(folder))
        os.chdir(here)
    seen = {"functions": walk.calls, "files": len(walk.files), "switches": walk.switches}
    most = sorted(walk.steps.items(), key=lambda each: -each[1])[:10]
    assert sys.__stdout__ is not None
    sys.__stdout__.write(json.dumps({**seen, "gits": walk.gits, "most": most}))


def rows_of(number: int, *, is_quick: bool) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Walk in a process of its own, which has imported nothing else."""
    question = QUESTIONS[number]
    argv = [sys.executable, __file__, "--one", str(number)]
    done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=240)  # noqa: PLW1510
    if done.returncode or not done.stdout:
        sys.exit(f"{question.name}: {done.stderr.decode()[-2000:]}")
    seen = json.loads(done.stdout)
    most = question.switches // 2
    yield (
        Row(
            question=f"switches of file: {question.name}",
            baseline=f"{question.switches} at commit bdb91ae",
            claim=f"at most {most}",
            verdict=judged(is_held=seen["switches"] <= most, is_quick=is_quick),
            found=f"{seen['switches']} between {seen['files']} files",
            numbers=seen,
        ),
        seen,
    )
    if question.gits:
        yield (
            Row(
                question=f"gits started: {question.name}",
                baseline=f"{question.gits} at commit bdb91ae",
                claim=f"fewer than {GITS}",
                verdict=judged(is_held=seen["gits"] < GITS, is_quick=is_quick),
                found=str(seen["gits"]),
                numbers={"gits": seen["gits"]},
            ),
            seen,
        )


def judged(*, is_held: bool, is_quick: bool) -> str:
    if is_quick:
        return "reported"
    return "held" if is_held else "BROKEN"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the first walk alone, no verdict")
    parser.add_argument("--hops", action="store_true", help="print the most frequent switches")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        walked(options.one)
        return 0
    found = [
        each
        for number in range(1 if options.quick else len(QUESTIONS))
        for each in rows_of(number, is_quick=options.quick)
    ]
    rows = [row for row, _ in found]
    if options.hops:
        for row, seen in found:
            if "gits started" in row.question:
                continue
            print(
                table((row.question, "times"), [(each, str(count)) for each, count in seen["most"]])
            )
    print(verdict_lines(rows))
    data = {"bench": "walk", **machine([]), "verdicts": [each.data() for each in rows]}
    if options.json or not options.quick:
        write(options.json or RESULTS / "walk.json", data)
    return int(any(row.verdict == "BROKEN" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

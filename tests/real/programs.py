"""What do the real agent programs do under each fault?

Runs claude, codex, gemini and opencode once against each of a few faults and prints a table: how
many requests they made, in how many seconds, how they ended, what they said last. It asserts one
thing only, that each of them takes the server for its provider when the server is well: it answers,
and the tool that the server asks for runs once. What they do otherwise is theirs to change, and
ours to know.

    python tests/real/programs.py FOLDER [--only claude] [--limit 30]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mulligan.core.redaction import presentable
from mulligan.faults.client_settings import GEMINI_SETTINGS, codex_options
from mulligan.testing import FaultServer

FAULTS = {
    "ok": "ok",
    "tool call": "shell(echo ran >> ran.txt),ok",
    "429": "429(retry-after=2)",
    "529": "overloaded",
    "plan limit": "plan(5h)",
    "stalled stream": "stall",
}
PROMPT = "say hi"


@dataclass(frozen=True)
class Run:
    """One program against one fault."""

    program: str
    fault: str
    requests: int
    early: int
    effects: int
    span: float
    took: float
    code: int | None
    words: str

    @property
    def ended(self) -> str:
        return f"killed after {self.took:.0f}s" if self.code is None else f"exit {self.code}"


def argv(program: str, url: str) -> list[str]:
    return {
        "claude": [
            *("-p", PROMPT, "--output-format", "stream-json", "--verbose"),
            *("--allowedTools", "Bash"),
        ],
        "codex": [
            *codex_options(url),
            *("exec", "--skip-git-repo-check", "--json"),
            *("--dangerously-bypass-approvals-and-sandbox", PROMPT),
        ],
        "gemini": ["-p", PROMPT, "-o", "json", "-m", "gemini-2.5-flash", "--skip-trust", "--yolo"],
        "opencode": ["run", "--format", "json", "--title", "t", PROMPT],
    }[program]


def login(program: str, fault: str) -> str:
    """As whom: a plan's limit is met by who is logged in to a plan."""
    return "claude-plan" if (program, fault) == ("claude", "plan limit") else program


def run(folder: Path, program: str, fault: str, limit: float) -> Run:
    with tempfile.TemporaryDirectory() as home, FaultServer(FAULTS[fault]) as server:
        work = Path(home, "work")
        work.mkdir()
        Path(home, ".gemini").mkdir()
        Path(home, ".gemini/settings.json").write_text(GEMINI_SETTINGS, encoding="utf-8")
        # A home of its own: the user's settings, keys and sessions are neither read nor written.
        env = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "NO_COLOR": "1",
            **server.env(login(program, fault)),
        }
        began = time.monotonic()
        with (
            Path(home, "out").open("w+b") as out,
            subprocess.Popen(
                [folder / "node_modules/.bin" / program, *argv(program, server.url)],
                cwd=work,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                # Also what it left behind: some programs start helpers.
                stop(process)
            took = time.monotonic() - began
            out.seek(0)
            words = last_words(out.read().decode("utf-8", "replace"))
        asked, totals = server.requests, server.totals
        ran = Path(work, "ran.txt")
        effects = len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0
    span = asked[-1].at - asked[0].at if asked else 0.0
    return Run(program, fault, totals.requests, totals.early, effects, span, took, code, words)


def stop(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait(5)


def last_words(text: str) -> str:
    """The last thing that a person would read in it."""
    _, opening, block = ("\n" + text).rpartition("\n{\n")
    if opening:
        with contextlib.suppress(ValueError):
            return presentable(sentence(json.loads("{" + block)), 100)
    for line in reversed([line for line in text.splitlines() if line.strip(" {}[]")]):
        try:
            found = json.loads(line)
        except ValueError:
            return presentable(line.strip(), 100)
        said = sentence(found)
        if said:
            return presentable(said, 100)
    return ""


def sentence(found: object) -> str:
    """The longest text under a name that carries words."""
    said = [""]
    if isinstance(found, dict):
        for name, value in found.items():
            if isinstance(value, str) and name in {"message", "result", "text", "response"}:
                said.append(value)
            elif isinstance(value, dict):
                said.append(sentence(value))
    return max(said, key=len)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="claude,codex,gemini,opencode")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each run")
    given = parser.parse_args()
    pairs = [(program, fault) for program in given.only.split(",") for fault in FAULTS]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(run, given.folder, *pair, given.limit) for pair in pairs]
        runs = [each.result() for each in waiting]
    heads = ("program", "fault", "requests", "in", "too early", "tool ran", "ended", "last words")
    table = Table(*heads)
    for each in runs:
        table.add_row(
            each.program,
            each.fault,
            str(each.requests),
            f"{each.span:.1f}s",
            str(each.early),
            str(each.effects),
            each.ended,
            each.words.replace("[", r"\["),
        )
    Console(width=200).print(table)
    # A program that does not take the server for its provider makes every other line worthless.
    strangers = [
        f"{each.program} ({each.fault})"
        for each in runs
        if (each.fault == "ok" and (each.code != 0 or not each.requests))
        or (each.fault == "tool call" and (each.code != 0 or each.effects != 1))
    ]
    if strangers:
        sys.stderr.write(f"error: not taken for the provider by {', '.join(strangers)}\n")
    return 1 if strangers else 0


if __name__ == "__main__":
    sys.exit(main())

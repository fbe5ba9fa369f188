"""Does a session go on where it stopped, with the real programs?

Each program is started as its adapter says, asks for a tool, runs it, and then meets a failure that
ends it. The session is then resumed as the adapter says, against a server that is well. The tool
must not run again, the history must be there, and the session must be the same. A second round
fails the first request already: a program that has saved nothing says so, and is started anew. In a
third the program is killed while its tool runs.

    python tests/real/resume.py FOLDER [--only claude,codex] [--limit 60]
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
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tap import Tap

from mulligan.faults.client_settings import GEMINI_SETTINGS, codex_settings
from mulligan.run.agents.adapter import Launch, LaunchRequest
from mulligan.run.agents.catalogue import recognise
from mulligan.testing import FaultServer

PROMPT = "Append the word ran to ran.txt and tell me when it is done"
TOOL = "shell(echo ran >> ran.txt)"
WHEN = {
    "after a tool": f"{TOOL},{{ending}}",
    "at once": "{ending}",
    "killed in a tool": "shell(echo ran >> ran.txt && sleep 60),ok",
}
# What ends each program at once, without minutes of retries of its own.
ENDING = {"gemini": "plan(5h)", "opencode": "401", "qwen": "401", "pi": "401"}

COSTS = ("input", "output", "cacheRead", "cacheWrite")

ARGV = {
    "claude": ("-p", PROMPT, "--allowedTools", "Bash"),
    "codex": (
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        PROMPT,
    ),
    "gemini": ("-p", PROMPT, "-m", "gemini-2.5-flash", "--skip-trust", "--yolo"),
    "opencode": ("run", "--title", "t", PROMPT),
    "qwen": ("--auth-type", "openai", "--yolo", PROMPT),
    "copilot": ("--allow-all-tools", "--no-auto-update", "-p", PROMPT),
    "pi": ("--provider", "mulligan", "--model", "gpt-5", "-p", PROMPT),
}


@dataclass
class Attempt:
    """One start of a program, as `run` would see it."""

    code: int | None = None
    took: float = 0.0
    session: str = ""
    retries: int = 0
    work: bool = False
    tools: int = 0
    lost: bool = False
    is_anew: bool = False
    cost: float | None = None
    tokens: int | None = None
    shown: str = ""
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Round:
    """A start that fails, then a resume."""

    program: str
    when: str
    first: Attempt
    second: Attempt
    effects: int
    wanted: int
    has_history: bool

    @property
    def is_same(self) -> bool:
        return self.first.session == self.second.session != ""

    @property
    def is_right(self) -> bool:
        return (
            self.first.code not in (0, None)
            or (self.program == "pi" and self.first.code == 0)  # its json mode exits 0
        ) and (
            self.second.code == 0
            and self.effects == self.wanted
            and self.has_history
            and self.is_same != self.second.is_anew
            and self.second.work
            and self.second.tools == 0
            and bool(self.second.shown)
        )


def attempt(
    launch: Launch, env: dict[str, str], work: Path, limit: float, *, until: Path | None = None
) -> Attempt:
    """Start it, and read it when it has ended; with `until`, kill it once that file is there."""
    found = Attempt(session=launch.session)
    began = time.monotonic()
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        subprocess.Popen(
            launch.argv,
            cwd=work,
            env={**env, **launch.environ},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        ) as process,
    ):
        while process.poll() is None and time.monotonic() - began < limit:
            if until is not None and until.exists():
                # What it has seen may still be on its way to its disk.
                time.sleep(1)
                break
            time.sleep(0.1)
        # Also what it left behind: some programs start helpers.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        found.code = process.wait(5)
        found.took = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read(), err.read()
    reader = recognise(launch.argv).reader(launch)
    lines = [("stdout", line) for line in stdout.splitlines()]
    lines += [("stderr", line) for line in stderr.splitlines()]
    notes = [reader.line(stream, line) for stream, line in lines]  # type: ignore[arg-type]
    for note in (*notes, reader.end()):
        if note is None:
            continue
        found.session = note.session or found.session
        found.retries += note.is_retry
        found.work |= note.is_work
        found.lost |= note.is_lost
        found.tools = found.tools if note.pending is None else len(note.pending)
        found.cost = found.cost if note.cost is None else note.cost
        found.tokens = found.tokens if note.tokens is None else note.tokens
        found.shown += "".join(text for stream, text in note.shown if stream == "stdout")
        found.words += [text.strip() for _, text in note.shown]
    if not launch.is_translated:
        found.shown = stdout.decode("utf-8", "replace")
        found.work = found.work or bool(found.shown)
    found.words += stderr.decode("utf-8", "replace").splitlines()
    return found


def home_of(program: str, home: Path, url: str) -> None:
    """Settings that are no variables."""
    texts = {
        ".gemini/settings.json": GEMINI_SETTINGS,
        ".codex/config.toml": "".join(f"{line}\n" for line in codex_settings(url)),
        ".pi/agent/models.json": json.dumps(
            {
                "providers": {
                    "mulligan": {
                        "baseUrl": f"{url}/v1",
                        "api": "openai-completions",
                        "apiKey": "MULLIGAN_KEY",
                        "models": [
                            {
                                "id": "gpt-5",
                                "name": "gpt-5",
                                "reasoning": False,
                                "input": ["text"],
                                "contextWindow": 128_000,
                                "maxTokens": 8_000,
                                "cost": dict.fromkeys(COSTS, 1),
                            }
                        ],
                    }
                }
            }
        ),
    }
    for name, text in texts.items():
        if name.startswith(f".{program}"):
            Path(home, name).parent.mkdir(parents=True, exist_ok=True)
            Path(home, name).write_text(text, encoding="utf-8")


def environment(program: str, home: Path, server: FaultServer, url: str) -> dict[str, str]:
    pointed = server.env(program) if program != "pi" else {"MULLIGAN_KEY": "sk-for-the-server"}
    own = {"codex": {"CODEX_HOME": f"{home}/.codex"}, "gemini": {"GEMINI_CLI_HOME": str(home)}}
    home_of(program, home, url)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "NO_COLOR": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        **{name: value.replace(server.url, url) for name, value in pointed.items()},
        **own.get(program, {}),
    }


def go(folder: Path, program: str, when: str, limit: float) -> Round:
    ending = ENDING.get(program, "overloaded")
    command = (str(folder / "node_modules/.bin" / program), *ARGV[program])
    adapter = recognise(command)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made,
        FaultServer(WHEN[when].format(ending=ending)) as server,
        Tap(server.port) as tap,
    ):
        home = Path(made)
        work = home / "work"
        work.mkdir()
        env = environment(program, home, server, tap.url)
        wish = LaunchRequest(session=str(uuid.uuid4()), environ=env)
        ran = work / "ran.txt"
        until = ran if when == "killed in a tool" else None
        first = attempt(adapter.start(command, wish), env, work, limit, until=until)
        server.set("ok")
        tap.heard.clear()
        second = Attempt()
        if first.session:
            second = attempt(adapter.resume(command, first.session, wish), env, work, limit)
        if second.lost and not first.work:
            fresh = LaunchRequest(session=str(uuid.uuid4()), environ=env)
            second = attempt(adapter.start(command, fresh), env, work, limit)
            second.is_anew = True
        said = bytes(tap.heard)
        effects = len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0
    wanted = 0 if when == "at once" else 1
    # Gemini and its fork do not save a call whose result has not come; nobody else forgets it.
    is_fork = program in {"gemini", "qwen"}
    is_call_saved = when == "after a tool" or (until is not None and not is_fork)
    has_history = PROMPT.encode() in said and (not is_call_saved or b"ran >> ran.txt" in said)
    return Round(program, when, first, second, effects, wanted, has_history)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="claude,codex,gemini,opencode")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for each start")
    parser.add_argument("--words", action="store_true", help="show the last words of each start")
    given = parser.parse_args()
    pairs = [(each, when) for each in given.only.split(",") for when in WHEN]
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(go, given.folder, *pair, given.limit) for pair in pairs]
        rounds = [each.result() for each in waiting]
    heads = (
        "program",
        "failed",
        "exit",
        "own retries",
        "tokens",
        "resumed",
        "tokens",
        "same session",
    )
    table = Table(*heads, "history", "tool ran", "right")
    for each in rounds:
        table.add_row(
            each.program,
            each.when,
            str(each.first.code),
            str(each.first.retries),
            str(each.first.tokens),
            f"exit {each.second.code} in {each.second.took:.0f}s",
            str(each.second.tokens),
            "anew" if each.second.is_anew else "yes" if each.is_same else "no",
            "yes" if each.has_history else "no",
            f"{each.effects} of {each.wanted}",
            "yes" if each.is_right else "NO",
        )
        if given.words or not each.is_right:
            for name in ("first", "second"):
                made: Attempt = getattr(each, name)
                sys.stderr.write(f"{each.program}, {each.when}, {name}: {made}\n"[:3000])
    Console(width=160).print(table)
    wrong = [f"{each.program} ({each.when})" for each in rounds if not each.is_right]
    if wrong:
        sys.stderr.write(f"error: not resumed as it should be: {', '.join(wrong)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

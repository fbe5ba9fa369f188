"""What `make demo` shows: five nights of an agent program, a plan of four, an agent's tools.

The agents are scripted, and speak the formats of real programs; no provider is asked, no account
is needed. Everything else is real: the command, its processes, its journal, its waits.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
AGENTS = {"claude": HERE / "scripted_agent.py", "codex": HERE / "scripted_codex.py"}

# What to try next, if one of these programs is installed.
PROGRAMS = {
    "claude": 'claude -p "Port the tests to pytest"',
    "codex": 'codex exec "Port the tests to pytest"',
    "gemini": 'gemini -p "Review this folder"',
    "opencode": 'opencode run "Review this folder"',
    "qwen": 'qwen -p "Review this folder"',
    "copilot": 'copilot -p "Review this folder"',
    "pi": 'pi -p "Review this folder"',
    "cn": 'cn -p "Review this folder"',
    "cline": 'cline "Review this folder"',
    "aider": 'aider --message "Add a docstring to every module"',
}

console = Console(highlight=False, soft_wrap=True)


class Stage:
    """A folder with scripted agents on its PATH, and a run store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.acts = folder, 0
        programs = folder / "bin"
        programs.mkdir()
        for name, script in AGENTS.items():
            # The interpreter is named: a fresh machine may have no python3 on its PATH.
            wrapper = programs / name
            wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {script} "$@"\n')
            wrapper.chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
        self.environ = {**os.environ, "PATH": path, "MULLIGAN_HOME": str(folder / "home")}
        self.environ.pop("MULLIGAN_STORE", None)

    def act(self, title: str, about: str, script: str, command: str) -> tuple[int, int]:
        """Run `command`; its exit code, and how often the tool took effect."""
        self.acts += 1
        work = self.folder / f"act-{self.acts}"
        work.mkdir()
        console.print(Text(f"\n{self.acts}. {title}", style="bold"))
        console.print(Text(f"   {about}\n", style="dim"))
        # Accounts are told apart by their keys: each act has one of its own.
        account = {"ANTHROPIC_API_KEY": title, "OPENAI_API_KEY": title}
        code = self.run(command, work, SCRIPT=script, SESSIONS=str(work / "sessions"), **account)
        effects = work / "effects.txt"
        return code, len(effects.read_text().splitlines()) if effects.exists() else 0

    def plan(self, title: str, about: str, plan: str) -> tuple[int, Path]:
        """Run a plan in a git repository made on the spot; its exit code, and the repository."""
        self.acts += 1
        tree = self.folder / "repository"
        tree.mkdir()
        (tree / "review.toml").write_text(plan.replace("SESSIONS_FOLDER", str(self.folder)))
        who = ["-c", "user.name=Demo", "-c", "user.email=demo@example.com"]
        for line in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "A plan"]):
            subprocess.run(["git", *line], cwd=tree, check=True)  # noqa: S603, S607 -- fixed words
        console.print(Text(f"\n{self.acts}. {title}", style="bold"))
        console.print(Text(f"   {about}\n", style="dim"))
        return self.run("mulligan run --report report.md review.toml", tree), tree

    def tools(self, title: str, about: str) -> int:
        """Play an agent of our own twice, against a shop that fails; its exit code."""
        self.acts += 1
        console.print(Text(f"\n{self.acts}. {title}", style="bold"))
        console.print(Text(f"   {about}", style="dim"))
        argv = [sys.executable, str(HERE / "agent_loop.py"), "--quiet"]
        return subprocess.run(argv, env=self.environ, check=False, timeout=60).returncode  # noqa: S603 -- our own file

    def run(self, command: str, cwd: Path, **environ: str) -> int:
        """Run a `mulligan` command where the user can see it."""
        console.print(Text(f"$ {command}", style="cyan"))
        argv = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(  # noqa: S603 -- our own command
            argv, cwd=cwd, env={**self.environ, **environ}, check=False, timeout=60
        )
        return done.returncode


def concluded(words: str) -> None:
    console.print(Text(f"\n   → {words}", style="green"))


def main() -> None:
    began = time.monotonic()
    console.print(Text("mulligan run: the right second chance for agent programs", style="bold"))
    with tempfile.TemporaryDirectory(prefix="mulligan-demo-") as folder:
        play(Stage(Path(folder)))
    took = time.monotonic() - began
    console.print(Text(f"\nThat took {took:.0f} seconds. {NEXT}"), end="")
    console.print(Text(installed()))


def play(stage: Stage) -> None:
    code, effects = stage.act(
        "A usage limit, an hour before midnight",
        "Claude Code has run a tool when its plan's limit is reached; it resets in a few seconds.",
        "work:1 effect limit:3 work:1 ok",
        "mulligan run -- claude -p 'Port the tests to pytest'",
    )
    concluded(
        f"exit code {code}. It waited for the reset, then the same session went on: "
        f"the tool ran {times(effects)}, and the failed attempt's cost is counted."
    )
    code, effects = stage.act(
        "A crash, then a lost connection",
        "Codex is killed in the middle of its work; after that the network fails.",
        "effect work:0.5 crash work:0.5 lost ok",
        "mulligan run -- codex exec 'Port the tests to pytest'",
    )
    concluded(
        f"exit code {code}. Its session was resumed, not restarted: the tool ran {times(effects)}."
    )
    code, _ = stage.act(
        "A stream that stalls",
        "Claude Code falls silent. A second of that is enough here; ten minutes are the default.",
        "stall ok",
        "mulligan run --idle 1s -- claude -p 'Port the tests to pytest'",
    )
    concluded(f"exit code {code}. Silence is a failure too; without a watch it lasts all night.")
    code, _ = stage.act(
        "An error that must stop",
        "The key is wrong. Trying again cannot help, and locks accounts.",
        "login ok",
        "mulligan run -- claude -p 'Port the tests to pytest'",
    )
    concluded(f"exit code {code}, the program's own, after one attempt.")
    code, _ = stage.act(
        "A limit that resets in three hours",
        "No process has to wait: the run is parked on disk, and survives a reboot.",
        "effect limit:10800 ok",
        "mulligan run --park exit --name night -- claude -p 'Port the tests to pytest'",
    )
    console.print()
    stage.run("mulligan runs", stage.folder)
    concluded(
        f"exit code {code} means: later. mulligan worker wakes it when it is due; "
        f"mulligan show night tells why."
    )
    code, tree = stage.plan(
        "A plan: three reviewers, two must succeed, one sums up",
        "One meets a limit, one crashes, one cannot log in; each has a work tree of its own.",
        PLAN,
    )
    kept = sorted(each.name for each in tree.glob("*.md"))
    concluded(
        f"exit code {code}. Two of three were enough, and the last agent read what they said: "
        f"{', '.join(kept)}."
    )
    stage.tools(
        "Tools of an agent: the same faults, with blind retries and with a Toolbox",
        "A shop answers 429, 503 and 422, resets a connection and loses two replies.",
    )
    concluded("The customer paid once, the right amount, and got one mail.")


PLAN = """\
name = "review"

[[phases]]
name = "review"
on_failure = "require_minimum"
minimum = 2
policy = "default"
git = "worktree"

[[phases.agents]]
name = "security"
program = "claude"
prompt = "Look for holes in the last commit"
output = "security.md"
env = { SCRIPT = "work:1 limit:3 ok", SESSIONS = "SESSIONS_FOLDER/s1", ANTHROPIC_API_KEY = "one" }

[[phases.agents]]
name = "style"
program = "claude"
prompt = "Look for what is hard to read in the last commit"
output = "style.md"
env = { SCRIPT = "work:1 crash ok", SESSIONS = "SESSIONS_FOLDER/s2", ANTHROPIC_API_KEY = "two" }

[[phases.agents]]
name = "speed"
program = "claude"
prompt = "Look for what is slow in the last commit"
env = { SCRIPT = "login", SESSIONS = "SESSIONS_FOLDER/s3", ANTHROPIC_API_KEY = "wrong" }

[[phases]]
name = "sum"

[[phases.agents]]
name = "editor"
program = "claude"
prompt = "Make one review of these: {{outputs.review}}"
output = "review.md"
env = { SCRIPT = "work:1 ok", SESSIONS = "SESSIONS_FOLDER/s4", ANTHROPIC_API_KEY = "four" }
"""


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def installed() -> str:
    """What can be tried with what is there."""
    found = [example for name, example in PROGRAMS.items() if shutil.which(name)]
    if not found:
        return (
            f"  none of {', '.join(PROGRAMS)} is installed here; any other program can be run:\n"
            f"  .venv/bin/mulligan run --restart -- ./nightly.sh\n"
        )
    return "".join(f"  .venv/bin/mulligan run -- {example}\n" for example in found[:4])


NEXT = """Read docs/run.md and docs/tutorial-plans.md, and try next:

  .venv/bin/mulligan run --help             what it does about each failure
  .venv/bin/mulligan run --dry-run examples/plans/review.toml
  .venv/bin/python examples/flaky_calls.py  the same judgement for calls in your own code
"""


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

"""Every snippet in README.md and docs/ runs, and prints what the page says it prints.

The blocks of a page run in order, in one namespace, in virtual time: a page may wait six hours.
A block is left out only with its reason, ``<!-- not run: reason -->``, and NOT_RUN names it.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import io
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mulligan.run.plan.lint import lint_plan
from mulligan.run.plan.load import load_plan
from mulligan.testing import FaultServer, virtual_time

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PLANS = sorted((ROOT / "examples").glob("*/*.toml"))

# Page and reason of every block that is left out.
NOT_RUN = {
    ("docs/dashboard.md", "it serves until it is interrupted"),
    ("docs/fault-server.md", "the first line serves until Ctrl-C, and the others talk to it"),
    ("docs/git.md", "they need a repository in which a run has set something aside"),
    ("docs/git.md", "they need a plan whose agent has failed"),
    ("docs/telemetry.md", "it starts an agent program"),
    ("docs/telemetry.md", "what it prints is what happened on that machine"),
    ("docs/tutorial-plans.md", "a person has to press Ctrl-C"),
}

_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*?) *-->\n)?"
    r"^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    language: str
    body: str
    line: int
    reason: str | None


def blocks(page: Path) -> list[Block]:
    words = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            found["body"],
            words.count("\n", 0, found.start("body")) + 1,
            found["reason"],
        )
        for found in _FENCE.finditer(words)
    ]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@contextlib.contextmanager
def a_page_of_logging():
    """The root logger without pytest's handlers, so that a page may configure it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_python_block_runs_and_prints_what_the_page_says(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {"__name__": page.stem}
    output = io.StringIO()  # one for the page: a handler that a block made outlives the block
    printed: str | None = None
    with a_page_of_logging():
        for block in blocks(page):
            if block.language == "python" and block.reason is None:
                printed = run(page, block, namespace, output)
            elif block.language == "text" and printed is not None:
                assert printed.rstrip() == block.body.rstrip(), f"{name(page)}:{block.line}"
                printed = None
    with warnings.catch_warnings():  # pages leave clients open; the next test must not hear of it
        warnings.simplefilter("ignore", ResourceWarning)
        namespace.clear()
        gc.collect()


def run(page: Path, block: Block, namespace: dict[str, Any], output: io.StringIO) -> str:
    """What the block printed. Tests that it defines are called, as pytest would."""
    where = "\n" * (block.line - 1)  # so that a traceback names the line of the page
    code = compile(where + block.body, str(page), "exec")
    before = len(output.getvalue())
    with contextlib.redirect_stdout(output), virtual_time():
        exec(code, namespace)  # noqa: S102 -- our own page
    for each in ast.parse(block.body).body:
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
            with virtual_time() as clock, contextlib.ExitStack() as stack:
                fixtures = {
                    "virtual_clock": lambda: clock,
                    "fault_server": lambda: stack.enter_context(FaultServer()),
                }
                namespace[each.name](*[fixtures[needed.arg]() for needed in each.args.args])
    return output.getvalue()[before:]


def test_a_block_is_left_out_only_with_a_reason():
    left_out = {
        (name(page), each.reason)
        for page in PAGES
        for each in blocks(page)
        if each.reason is not None
    }
    assert left_out == NOT_RUN
    assert all(reason for _, reason in left_out)


class Command(NamedTuple):
    words: str
    shown: str
    code: int


def sessions(page: Path) -> list[list[Command]]:
    """The commands of each console block, with the output shown below them and the exit codes."""
    found: list[list[Command]] = []
    moved: list[Command] = []  # a reader stays in a folder, from one block to the next
    for block in blocks(page):
        if block.language != "console" or block.reason is not None:
            continue
        session: list[Command] = [*moved]
        for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
            words, _, shown = part.partition("\n")
            if words == "echo $?":
                session[-1] = session[-1]._replace(code=int(shown))
            else:
                session.append(Command(words, shown.rstrip(), 0))
        found.append(session)
        moved = [each for each in session if each.words.startswith("cd ")]
    indented = re.findall(r"^    \$ (mulligan .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [*found, *([Command(words, "", 0)] for words in indented)]


SESSIONS = [(page, session) for page in PAGES for session in sessions(page)]


def alike(printed: str, command: str) -> str:
    """What a run printed without what differs from one night to the next: ids, times, durations."""
    if not re.match(r"mulligan (run|show|resume) ", f"{command} "):
        return printed
    for pattern, same in (
        (r"\b\d\d:\d\d:\d\d\b", "00:00:00"),
        (r"\b\d{1,2}:\d\d[ap]m\b", "0:00am"),
        (r"\b\d+(\.\d+)?m?s\b", "0s"),
        (r"(?<=resume )[a-z0-9]{6}|(?<=show )[a-z0-9]{6}|\b[a-z0-9]{6}(?=\.\w+\.\w)", "k3fqzz"),
    ):
        printed = re.sub(pattern, same, printed)
    return re.sub(r" +", " ", printed)  # and how wide that made a column


@pytest.mark.real
@pytest.mark.parametrize(
    ("page", "session"),
    SESSIONS,
    ids=[f"{name(page)}: {session[-1].words}" for page, session in SESSIONS],
)
def test_every_command_does_what_the_page_shows(page, session, tmp_path):
    """The commands of one block share a folder and the runs in it, as they do for a reader."""
    shutil.copy(ROOT / "examples" / "policy.toml", tmp_path / "policy.toml")
    ours = shutil.ignore_patterns(".sessions")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ours)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PATH": programs}
    before = ""
    for words, shown, code in session:
        if words.startswith(("cd ", "export ")):
            before += f"{words} && "
            continue
        result = subprocess.run(  # noqa: S602 -- pages redirect output, and are ours
            before + words,
            shell=True,
            cwd=tmp_path,
            env={**environ, "MULLIGAN_HOME": f"{tmp_path}/home"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
        )
        assert result.returncode == code, result.stdout
        if shown:
            # A line of three dots on the page stands for any number of lines.
            parts = [
                re.escape(alike(part.strip("\n"), words))
                for part in re.split(r"^…$", shown, flags=re.MULTILINE)
            ]
            printed = alike(result.stdout.rstrip(), words)
            assert re.fullmatch(r"(?:\n|.)*?".join(parts), printed), result.stdout


@pytest.mark.real
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_every_example_runs(example):
    program = ["-m", "pytest", "-q"] if example.name.startswith("test_") else []
    result = subprocess.run(
        [sys.executable, *program, str(example)],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("plan", PLANS, ids=name)
def test_every_plan_can_be_started(plan):
    """A program that is not on this machine is no error of the plan."""
    assert load_plan(plan).phases
    grave = [each for each in lint_plan(load_plan(plan), folder=plan.parent) if each.is_grave]
    assert grave == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_plan_on_a_page_is_part_of_one_that_is_run(page):
    plans = [plan.read_text(encoding="utf-8") for plan in PLANS]
    for block in blocks(page):
        if block.language == "toml" and "[phases" in block.body:
            assert any(block.body in plan for plan in plans), f"{name(page)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


FEATURES = [
    *("run", "retry", "guard-and-task", "classification", "policies", "testing", "fault-server"),
    *("once", "dead-letters", "telemetry", "git", "status", "plans", "simulator"),
    *("tools", "self-correction"),
]


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_page_has_the_same_five_headings(feature):
    words = (ROOT / "docs" / f"{feature}.md").read_text(encoding="utf-8")
    outside_code = _FENCE.sub("", words)
    assert re.findall(r"^## (.*)$", outside_code, re.MULTILINE) == [
        "What it does",
        "Use it",
        "Defaults",
        "What it reports",
        "How people get it wrong",
    ]

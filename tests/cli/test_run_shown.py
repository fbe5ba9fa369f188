"""What `mulligan run` prints, with real programs in real processes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

AGENT = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
CODEX = AGENT.with_name("scripted_codex.py")
SECRET = "sk-planted-0123456789abcdefghij"


@pytest.fixture
def environ(tmp_path):
    """A folder with a scripted claude and codex, and a run store of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in (("claude", AGENT), ("codex", CODEX)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "MULLIGAN_HOME": str(tmp_path / "home"),
        "SESSIONS": str(tmp_path / "sessions"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def run(environ, tmp_path):
    def run(*argv: str, script: str = "ok") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mulligan", *argv],
            cwd=tmp_path,
            env={**environ, "SCRIPT": script},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_a_program_that_does_well_prints_what_it_prints_without_us(run):
    done = run("run", "--", "sh", "-c", "printf out; printf err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out", "err")


def test_a_night_in_plain_lines(run):
    done = run("run", "--", "claude", "-p", "hi", script="overloaded ok")
    assert done.returncode == 0
    assert done.stdout == "All done, after 2 steps.\n"
    first, second, third, summary, *rows = done.stderr.splitlines()
    assert "attempt 1: claude found the provider overloaded after " in first
    assert first.endswith(", $0.04: API Error: 529 Overloaded")
    assert second.endswith(", by backoff")
    assert third.endswith("attempt 2: claude resumes its session")
    assert summary.startswith("mulligan: done: 2 attempts in ")
    assert summary.endswith("$0.08, 2,000 tokens")
    assert len(rows) == 2


def test_codex_resumes_too_and_its_tool_runs_once(run, tmp_path):
    done = run("run", "--", "codex", "exec", "hi", script="effect crash effect ok")
    assert done.returncode == 0, done.stderr
    assert "attempt 1: codex crashed after " in done.stderr
    assert "attempt 2: codex resumes its session" in done.stderr
    assert len((tmp_path / "effects.txt").read_text().splitlines()) == 1


def test_final_only_shows_nothing_of_what_was_repeated(run):
    done = run("run", "--final-only", "--", "claude", "-p", "hi", script="overloaded ok")
    assert done.stdout == "All done, after 2 steps.\n"
    assert "529" in done.stderr  # what happened is told all the same


def test_the_answer_can_be_had_later_as_it_was_printed(run):
    first = run("run", "--", "claude", "-p", "hi", script="overloaded ok")
    assert first.stdout.endswith(later := run("show", "--answer").stdout)
    assert later == "All done, after 2 steps.\n"
    assert '"type"' in run("show", "--log").stdout
    run("run", "--", "sh", "-c", "printf 'as it is'")
    assert run("show", "--answer").stdout == "as it is"


LINGERING = """#!/bin/sh
echo '{"type":"result","subtype":"success","is_error":false,"result":"The answer."}'
exec sleep 20
"""


def test_an_answer_outlives_the_supervisor_that_held_it_back(run, environ, tmp_path):
    (tmp_path / "bin" / "claude").write_text(LINGERING)
    command = ("run", "--final-only", "--", "claude", "-p", "hi")
    with subprocess.Popen(
        [sys.executable, "-m", "mulligan", *command],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as killed:
        ends_at = time.monotonic() + 30
        while not [each for each in (tmp_path / "home").glob("runs/*/held") if each.stat().st_size]:
            assert time.monotonic() < ends_at
            time.sleep(0.02)
        killed.kill()
    done = run("resume")
    assert (done.returncode, done.stdout) == (0, "The answer.\n"), done.stderr
    assert not list((tmp_path / "home").glob("runs/*/held"))


def test_json_prints_events_and_nothing_else(run):
    done = run("run", "--json", "--name", "port", "--", "claude", "-p", "hi", script="login")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["event"] for each in events] == ["begun", "output", "ended", "summary"]
    assert events[-1]["status"] == "failed"
    assert events[-1]["exit"] == done.returncode == 1
    assert events[-1]["name"] == "port"
    assert done.stderr == ""


def test_somebody_is_told_of_a_parked_run_and_of_one_that_is_over(run, tmp_path):
    told = tmp_path / "told"
    notify = f"{sys.executable} -c \"import sys; open({str(told)!r}, 'a').write(sys.stdin.read())\""
    options = ("--park", "exit", "--notify", notify)
    parked = run("run", *options, "--", "claude", "-p", "hi", script="limit:900")
    assert parked.returncode == 75
    assert "mulligan: parked until " in parked.stderr
    assert run("cancel", parked.stderr.split()[-1]).returncode == 0
    run("run", *options, "--name", "again", "--", "codex", "exec", "hi", script="lost ok")
    first, second = [json.loads(line) for line in told.read_text().splitlines()]
    assert (first["event"], first["kind"]) == ("parked", "quota")
    assert (second["event"], second["status"], second["name"]) == ("over", "done", "again")


def test_whoever_takes_a_run_up_notifies_and_holds_back_as_was_asked_at_first(run, tmp_path):
    told = tmp_path / "told"
    options = ("--final-only", "--notify", f"sh -c 'cat >> {told}'")
    failed = run("run", *options, "--", "claude", "-p", "hi", script="login overloaded ok")
    assert (failed.returncode, failed.stdout) == (1, "Invalid API key\n")
    done = run("resume", script="login overloaded ok")
    assert (done.returncode, done.stdout) == (0, "All done, after 3 steps.\n")
    first, second = [json.loads(line) for line in told.read_text().splitlines()]
    assert (first["status"], second["status"]) == ("failed", "done")
    assert second["cost"] == pytest.approx(0.12)


def test_a_notification_that_fails_is_told_and_changes_nothing(run):
    done = run("run", "--notify", "false", "--", "true")
    assert done.returncode == 0
    assert done.stderr == "mulligan: the notify command failed: false exited with 1\n"


@pytest.mark.parametrize(
    ("notify", "error"),
    [
        ("'", "error: --notify cannot be split: no closing quotation\n\nhint: close its quotes\n"),
        (" ", "error: --notify needs a command\n\nhint: write --notify 'notify-send mulligan'\n"),
    ],
)
def test_a_notification_that_cannot_be_meant_is_refused(run, notify, error):
    done = run("run", "--notify", notify, "--", "true")
    assert (done.returncode, done.stderr) == (2, error)


LEAKY = f"""
import sys
print("API key {SECRET} is not valid", file=sys.stderr)
sys.exit(3)
"""


def test_a_planted_key_stays_in_the_users_own_files(run, tmp_path):
    told = tmp_path / "told"
    notify = f'sh -c "cat >> {told}" {SECRET}'
    command = ("--", sys.executable, "-c", LEAKY, "--api-key", SECRET)
    done = run("run", "--json", "--notify", notify, *command)
    plain = run("run", "--notify", notify, *command)
    assert done.returncode == plain.returncode == 3
    events = [json.loads(line) for line in done.stdout.splitlines()]
    said = [json.dumps(each) for each in events if each["event"] != "output"]
    ours = [line for line in plain.stderr.splitlines() if line.startswith("mulligan:")]
    printed = [run(*argv).stdout for argv in (["runs"], ["show"], ["show", "--json"])]
    for text in (*said, *ours, *printed, told.read_text()):
        assert SECRET not in text
    assert "[masked]" in told.read_text()
    private = {"command.json", "notify.json", "stdin"}
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file() and path.name not in private and path.suffix not in {".out", ".err"}:
            assert SECRET.encode() not in path.read_bytes(), path


def test_on_a_terminal_the_line_comes_and_goes(environ, tmp_path):
    script = "import time; print('hello', flush=True); time.sleep(1.3); print('bye')"
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover -- the child
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "mulligan", "run", "--", sys.executable, "-c", script]
        os.execve(sys.executable, command, {**environ, "TERM": "xterm"})  # noqa: S606 -- it has none
    written, ends_at = b"", time.monotonic() + 30
    while time.monotonic() < ends_at:
        try:
            chunk = os.read(master, 4096)
        except OSError:  # the terminal is gone with the program
            break
        if not chunk:
            break
        written += chunk
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0
    before, _, rest = written.partition(b"hello\r\n")
    assert before == b""
    line, _, after = rest.rpartition(b"\r\x1b[J")
    assert b" runs 0:0" in line
    assert after == b"bye\r\n"


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", ">&- 2>&- <&-"])
def test_streams_that_are_closed_are_not_mistaken_for_other_files(run, environ, closed):
    command = (
        f"exec {sys.executable} -m mulligan run -- sh -c 'echo hi; echo ho >&2; exit 3' {closed}"
    )
    done = subprocess.run(
        ["/bin/sh", "-c", command], env=environ, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 3
    assert run("show").returncode == 0  # the journal can be read


def test_wrapping_true_loads_neither_rich_nor_pydantic(environ, tmp_path):
    script = (
        "import sys\nfrom mulligan.cli import main\n"
        "try:\n    main(['run', '--', 'true'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print([name for name in ('rich', 'pydantic', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "[]\n", done.stderr

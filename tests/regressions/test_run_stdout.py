"""What `mulligan run` puts on stdout: issue 12, items 10 and 22.

`$(mulligan run -- claude -p …)` had the words of the limit and then the answer, and with
`--output-format json` two documents: each attempt was passed on as it came. Where stdout is not a
terminal only the attempt that counts is printed now; `--stream` passes on all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

AGENT = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
DOCUMENTS = """#!/bin/sh
if [ -e begun ]; then
    echo '{"type":"result","is_error":false,"result":"Done.","usage":{"output_tokens":3}}'
    exit 0
fi
: > begun
echo '{"type":"result","is_error":true,"api_error_status":529,"result":"API Error: 529 Overloaded"}'
exit 1
"""


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "bin").mkdir()
    put(tmp_path, f'#!/bin/sh\nexec "{sys.executable}" "{AGENT}" "$@"\n')
    return {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "MULLIGAN_HOME": str(tmp_path / "home"),
        "SESSIONS": str(tmp_path / "sessions"),
        "SCRIPT": "overloaded ok",
    }


def put(folder: Path, script: str) -> None:
    program = folder / "bin" / "claude"
    program.write_text(script)
    program.chmod(0o755)


@pytest.fixture
def shell(environ, tmp_path):
    """What a line of shell prints, with `mulligan` as a function in it."""

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        function = f'mulligan() {{ "{sys.executable}" -m mulligan "$@"; }}'
        return subprocess.run(
            ["/bin/sh", "-c", f"{function}\n{line}"],
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return shell


def test_a_substitution_has_exactly_the_answer(shell):
    done = shell('answer=$(mulligan run -- claude -p hi); echo "<$answer>"')
    assert done.stdout == "<All done, after 2 steps.>\n"
    assert "529" in done.stderr  # what happened is told all the same


def test_a_form_of_one_document_has_exactly_one(shell, tmp_path):
    put(tmp_path, DOCUMENTS)
    done = shell("mulligan run -- claude -p hi --output-format json")
    assert json.loads(done.stdout)["result"] == "Done."


def test_stream_passes_on_every_attempt(shell):
    done = shell("mulligan run --stream -- claude -p hi")
    assert done.stdout == "API Error: 529 Overloaded\nAll done, after 2 steps.\n"


def test_the_last_attempt_counts_where_all_failed(shell):
    done = shell("SCRIPT=login mulligan run -- claude -p hi")
    assert (done.returncode, done.stdout) == (1, "Invalid API key\n")


def test_a_parked_run_has_printed_nothing(shell):
    done = shell("SCRIPT=limit:900 mulligan run --park exit -- claude -p hi")
    assert (done.returncode, done.stdout) == (75, "")


def test_a_limit_beyond_the_horizon_leaves_stdout_empty(shell):
    """Left over from issue 12: `$(mulligan run …)` had the words of the limit for an answer."""
    limited = "SCRIPT=limit:30000 mulligan run -- claude -p hi"
    done = shell(f'answer=$({limited}); echo "$? <$answer>"')
    assert done.stdout == "75 <>\n"
    # As the program's own line, beside ours that quote it.
    assert any(line.startswith("You've hit your") for line in done.stderr.splitlines()), done.stderr
    streamed = shell(f"SESSIONS=others {limited.replace('run', 'run --now --stream')}").stdout
    assert streamed.startswith("You've hit your")


def test_a_program_of_its_own_that_exits_with_75_keeps_its_stdout(shell):
    done = shell("mulligan run --attempts 1 -- sh -c 'echo half; exit 75'")
    assert (done.returncode, done.stdout) == (75, "half\n")


def test_stderr_is_not_held_back_and_keeps_its_place_where_both_go_to_one(shell):
    command = "sh -c 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three'"
    done = shell(f"mulligan run -- {command}")
    assert (done.stdout, done.stderr) == ("one\nthree\n", "two\n")
    assert shell(f"mulligan run -- {command} > both 2>&1; cat both").stdout == "one\ntwo\nthree\n"


def test_flags_that_contradict_each_other_are_refused(shell):
    done = shell("mulligan run --stream --final-only -- claude -p hi")
    assert done.returncode == 2
    assert "--final-only and --stream contradict each other" in done.stderr


def test_events_come_as_they_happen(shell):
    done = shell("mulligan run --json -- claude -p hi")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    attempts = [each["attempt"] for each in events if each["event"] == "output"]
    assert attempts == [1, 2]


def test_an_answer_that_nobody_reads_is_kept_and_told(shell):
    """Item 10: into a closed pipe a paid success was "cut off"."""
    line = "(mulligan run -- claude -p hi; echo $? >&2) | true"
    done = shell(f"SCRIPT=ok; export SCRIPT; {line}; sleep 0.1; mulligan runs --json")
    assert json.loads(done.stdout.splitlines()[0])["status"] == "done"
    assert shell("mulligan show --answer").stdout == "All done, after 1 step.\n"

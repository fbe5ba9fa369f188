"""`mulligan classify FILE` kept four to five times the file in memory: 495 MB for 100 MB.

It read all of the output, and took all of it apart, to look at its end. Now it keeps the last 4 MB,
whether they come from a file or a pipe, as `mulligan run` judges an attempt by the end of its log.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.real

SCRIPT = """
import resource, sys
from mulligan.cli import main
sys.argv = ["mulligan", *sys.argv[1:]]
try:
    main()
finally:
    sys.stdout.flush()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
BEGIN = {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": []}
WORK = {"type": "assistant", "message": {"role": "assistant", "content": "x" * 400}}
END = {
    "type": "result",
    "subtype": "success",
    "is_error": True,
    "result": "Claude AI usage limit reached|1767250800",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The same end after 5 and after 60 MB."""
    folder, work = tmp_path_factory.mktemp("outputs"), json.dumps(WORK) + "\n"
    files = {}
    for megabytes in (5, 60):
        files[megabytes] = folder / f"{megabytes}.jsonl"
        with files[megabytes].open("w") as file:
            file.write(json.dumps(BEGIN) + "\n")
            for _ in range(megabytes):
                file.write(work * ((1 << 20) // len(work)))
            file.write(json.dumps(END) + "\n")
    return files


def classified(*arguments: str, stdin=None) -> tuple[dict, int]:
    now = ("--now", "2026-01-01T00:00:00+00:00", "--json")
    argv = [sys.executable, "-c", SCRIPT, "classify", *now, *arguments]
    done = subprocess.run(argv, stdin=stdin, capture_output=True, check=True)
    return json.loads(done.stdout), int(done.stderr.split()[-1])


@pytest.mark.parametrize("is_piped", [False, True])
def test_memory_does_not_grow_with_the_output(outputs, is_piped):
    found, peaks = {}, {}
    for megabytes, file in outputs.items():
        if is_piped:
            with subprocess.Popen(["cat", str(file)], stdout=subprocess.PIPE) as cat:  # noqa: S607
                found[megabytes], peaks[megabytes] = classified("-", stdin=cat.stdout)
        else:
            found[megabytes], peaks[megabytes] = classified(str(file))
    assert found[60] == found[5]
    assert (found[60]["kind"], found[60]["agent"]) == ("quota", "claude")
    assert peaks[60] < 1.2 * peaks[5], peaks


def test_an_output_that_is_one_endless_line_is_judged(tmp_path):
    file = tmp_path / "line"
    file.write_bytes(b"x" * (9 << 20))
    assert classified(str(file))[0]["kind"] is None


def test_a_short_output_is_judged_whole(tmp_path):
    file = tmp_path / "short"
    file.write_text(json.dumps(BEGIN) + "\n" + json.dumps(END) + "\n")
    found, _ = classified(str(file))
    assert (found["kind"], found["agent"]) == ("quota", "claude")

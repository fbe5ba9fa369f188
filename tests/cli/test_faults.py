from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from functools import partial
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from rich.text import Text

from mulligan.cli.commands.faults import command
from mulligan.cli.ui.faults import (
    PrinterThread,
    everywhere,
    ledger_table,
    pointers,
    request_line,
    shell_lines,
)
from mulligan.errors import MulliganError
from mulligan.faults.client_settings import POINTERS
from mulligan.faults.fault_names import MENU, STATUSES
from mulligan.faults.ledger import LedgerEntry
from mulligan.faults.remote import ask

pytestmark = pytest.mark.real


def mulligan(*argv: str) -> Result:
    return CliRunner().invoke(command, argv, env={"COLUMNS": "160"})


def post(url: str, path: str = "/invoices", body: bytes = b"{}", client: str = "bob") -> None:
    headers = {"x-client": client}
    with urlopen(Request(url + path, data=body, headers=headers), timeout=5) as response:
        response.read()


def refused(url: str, *args: Any, **kwargs: Any) -> int:
    with pytest.raises(HTTPError) as caught:
        post(url, *args, **kwargs)
    with caught.value as error:
        return error.code


def serve(*argv: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mulligan", "faults", *argv, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )


def test_it_serves_until_it_is_told_to_stop_and_says_what_happened():
    with serve("ok") as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        post(url)
        post(url)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 0
    assert f"ANTHROPIC_BASE_URL={url}" in out
    assert "POST /invoices" in err
    assert err.endswith(
        "stopped: 2 requests · 2 effects · 1 duplicate · 0 inside a closed window\n"
    )


def test_json_is_one_object_a_line():
    with serve("418", "--json") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert refused(first["url"]) == 418
        entry = json.loads(process.stdout.readline())
        process.terminate()
        process.communicate(timeout=10)
    assert first["script"] == "418"
    assert (entry["client"], entry["outcome"], entry["status"]) == ("bob", "418", 418)


def test_a_server_whose_lines_nobody_reads_serves_on_and_can_be_stopped():
    """Its stderr is a pipe of 64 kB, and each line has about a hundred bytes."""
    with serve("ok") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split(":")[-1])
        ask = b"GET /invoices/%b HTTP/1.1\r\nhost: localhost\r\n" % (b"x" * 50)
        with socket.create_connection(("127.0.0.1", port), 5) as sock:
            sock.sendall((ask + b"\r\n") * 1500 + ask + b"connection: close\r\n\r\n")
            got = b"".join(iter(lambda: sock.recv(65536), b""))
        assert got.count(b"HTTP/1.1 404 ") == 1501
        process.terminate()
        assert process.wait(5) == 0


def test_what_cannot_be_shown_is_dropped_and_counted():
    gate = threading.Event()
    shown: list[int] = []
    lines = PrinterThread(most=2)
    lines.add(gate.wait)
    time.sleep(0.05)  # the thread has taken it, and is stuck
    for number in range(5):
        lines.add(partial(shown.append, number))
    assert lines.dropped == 3
    assert not lines.close(0.05)
    gate.set()
    assert lines.close()
    assert shown == [0, 1]


def test_a_file_says_more_than_a_line(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text('[[rules]]\npath = "/invoices"\nsteps = "418"\n', encoding="utf-8")
    with serve("--file", str(path), "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["script"] == "/invoices -> 418"
        process.terminate()
        process.communicate(timeout=10)


def test_another_script_can_be_set_while_it_runs(fault_server, tmp_path):
    said = mulligan("set", "503x2, ok", "--url", fault_server.url)
    assert (said.exit_code, said.output) == (0, "503x2,ok\n")
    assert str(fault_server.script) == "503x2,ok"
    path = tmp_path / "faults.toml"
    path.write_text('script = "429"', encoding="utf-8")
    assert mulligan("set", "-f", str(path), "--url", fault_server.url).output == "429\n"


def test_another_server_is_not_taken_for_ours(fault_server):
    """Its REST resource is JSON, too, but no ledger."""
    with pytest.raises(MulliganError, match=r"is not a fault server$"):
        ask(fault_server.url, "/invoices", names="entries")


def test_a_script_cannot_paint_the_terminal(fault_server):
    said = mulligan("set", "ok(\x1b]0;evil\x07hi)", "--url", fault_server.url)
    assert said.output == "ok(hi)\n"


def test_limits_can_be_set_while_it_runs(fault_server):
    said = mulligan("set", "418", "--limit", "1/60s", "--count-refusals", "--url", fault_server.url)
    assert said.output == "418\n"
    assert [refused(fault_server.url) for _ in range(2)] == [418, 429]
    said = mulligan("set", "--limit", "9/60s", "--counting", "fixed", "--url", fault_server.url)
    assert said.output == "418\n"
    assert [refused(fault_server.url) for _ in range(10)] == [418] * 9 + [429]


def test_a_window_that_begins_with_its_end_is_no_option(fault_server):
    said = mulligan("set", "-5s:529,ok", "--url", fault_server.url)
    assert said.output == "0s-5s:529,ok\n"


def test_a_line_beside_a_file_is_for_what_no_rule_covers(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text(
        'script = "503"\n[[rules]]\npath = "/invoices"\nsteps = "418"\n'
        '[limits]\ntokens = "9/60s"\nrequests = "2/60s"\n',
        encoding="utf-8",
    )
    with serve("529", "--file", str(path), "--limit", "1/60s", "--json") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["script"] == "/invoices -> 418; 529"
        assert [refused(first["url"]) for _ in range(2)] == [418, 429]
        long = b'{"messages": "%b"}' % (b"x" * 99)
        assert refused(first["url"], "/v1/messages", long, client="c") == 429
        process.terminate()
        process.communicate(timeout=10)


def test_the_ledger_is_a_table_with_totals(fault_server):
    fault_server.set("lost,ok")
    with pytest.raises(OSError, match=r"reset|Remote"):
        post(fault_server.url)
    post(fault_server.url)
    lines = mulligan("ledger", "--url", fault_server.url).output.splitlines()
    assert lines[0].split() == [*("#", "after", "client", "request", "status", "outcome", "notes")]
    assert lines[1].split()[2:] == [
        "bob",
        "POST",
        "/invoices",
        "---",
        "lost",
        "POST",
        "/invoices/1",
    ]
    assert lines[2].endswith("ok       POST /invoices/2, duplicate")
    assert lines[3] == "2 requests · 2 effects · 1 duplicate · 0 inside a closed window"


def test_the_ledger_can_be_cut_cleared_and_had_as_json(fault_server):
    for number in range(3):
        post(fault_server.url, body=b'{"n": %d}' % number)
    assert len(mulligan("ledger", "-n", "1", "--url", fault_server.url).output.splitlines()) == 3
    said = mulligan("ledger", "--json", "--clear", "--url", fault_server.url)
    assert json.loads(said.output)["totals"]["requests"] == 3
    assert fault_server.totals.requests == 0


def test_other_peoples_words_cannot_paint_the_terminal(fault_server):
    post(fault_server.url, client="[red]\x1b[31mevil")
    output = mulligan("ledger", "--url", fault_server.url).output
    assert "\x1b" not in output
    assert "[red]" in output


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("serve", "stal"), 2, "no fault is called 'stal'; did you mean stall?"),
        (("set",), 2, "needs a SCRIPT, a --limit or a --file"),
        (("set", "ok", "--counting", "fixed"), 2, "--counting and --count-refusals need a --limit"),
        (("ok", "--count-refusals"), 2, "--counting and --count-refusals need a --limit or a "),
        (("set", "ok", "--url", "localhost"), 1, "the server's address begins with http://"),
        (("ledger", "--url", "http://127.0.0.1:9"), 1, "no fault server answers at"),
        (("ledger", "--url", "http://127.0.0.1:9"), 1, "or wait if its script contains a refuse"),
        (("ledger", "--url", "http://["), 1, "the server's address begins with http://"),
        (("serve", "--limit", "5"), 1, "a limit of requests is written like 50/60s; got '5'"),
    ],
)
def test_what_cannot_be_done_is_said(argv, code, message):
    """Through the real front door, as users see it."""
    run = [sys.executable, "-m", "mulligan", "faults", *argv]
    done = subprocess.run(run, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == code
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text("scrip = 'ok'", encoding="utf-8")
    run = [sys.executable, "-m", "mulligan", "faults", "-f", str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert done.stderr == f"error: {path}: scrip: no such key\n\nhint: did you mean script?\n"


def test_the_menu_lists_every_fault():
    output = mulligan("menu").output
    assert all(name in output for name in MENU if name not in STATUSES)
    assert all(name in output for name in STATUSES.values())


def entry_of(**more) -> LedgerEntry:
    path = "/v1beta/models/gemini-2.5-flash-preview:streamGenerateContent"
    known = {"number": 7, "at": 0.0, "after": 12.0, "client": "somebody-with-a-name"}
    known |= {"method": "POST", "path": path, "vendor": "gemini", "status": 429}
    return LedgerEntry(**{**known, "outcome": "429(retry-after=2)", **more})


@pytest.mark.parametrize("outcome", ["ok", "429(retry-after=2)", "503(message=come back later)"])
@pytest.mark.parametrize(
    "more", [{}, {"is_early": True}, {"model": "m" * 24, "attempt": {"x": "1"}}]
)
def test_at_eighty_columns_nothing_wraps_and_the_outcome_is_whole(outcome, more):
    entry = entry_of(outcome=outcome, **more)
    line = Text.from_markup(request_line(entry, 80)).plain
    assert len(line) <= 80
    assert outcome in line
    file = io.StringIO()
    console = Console(width=80, file=file, highlight=False)
    console.print(ledger_table([entry], 80))
    lines = file.getvalue().splitlines()
    assert len(lines) == 2
    assert outcome in lines[1]
    assert "POST /v1" in lines[1]


def test_the_banner_fits_and_can_be_pasted():
    lines = list(pointers("http://127.0.0.1:41234", "mulligan-me", "ok"))
    assert max(map(len, lines)) <= 80
    assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:41234" in lines


def test_every_program_is_told_how_to_get_there():
    text = "\n".join(pointers("http://127.0.0.1:1", "mulligan-me", "ok"))
    assert all(pointer.name in text for pointer in POINTERS)


@pytest.mark.parametrize("program", [pointer.name for pointer in POINTERS])
def test_what_points_a_program_can_be_evaluated(program):
    lines = "\n".join(shell_lines(program, "http://127.0.0.1:1", "mulligan-me"))
    run = ["/bin/sh", "-c", f"{lines}\nenv"]
    seen = subprocess.run(run, capture_output=True, text=True, timeout=20, check=True).stdout
    assert "mulligan-me" in seen
    assert mulligan("env", program).exit_code == 0


def evaluated(program: str, command: str, **env: str) -> str:
    lines = "\n".join(shell_lines(program, "http://127.0.0.1:1", "mulligan-me"))
    run = ["/bin/sh", "-c", f"{lines}\n{command}"]
    env |= {"PATH": os.environ["PATH"]}
    done = subprocess.run(run, env=env, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout


def test_a_proxy_is_passed_by_on_the_way_to_the_server():
    assert evaluated("openai", "echo $NO_PROXY $no_proxy") == "127.0.0.1 127.0.0.1\n"
    assert evaluated("openai", "echo $NO_PROXY", NO_PROXY="a,b") == "127.0.0.1,a,b\n"


def test_a_key_does_not_win_over_the_token_of_a_plan():
    key = {"ANTHROPIC_API_KEY": "sk-mine", "ANTHROPIC_AUTH_TOKEN": "mine"}
    assert "mine" not in evaluated("claude-plan", "env", **key)


def test_codex_and_gemini_get_a_home_with_their_settings():
    assert tomllib.loads(evaluated("codex", 'cat "$CODEX_HOME/config.toml"'))["model_providers"]
    said = json.loads(evaluated("gemini", 'cat "$GEMINI_CLI_HOME/.gemini/settings.json"'))
    assert said["security"]["auth"]["selectedType"] == "gemini-api-key"


def test_who_listens_everywhere_is_told_how_others_get_there():
    with serve("ok", "--host", "0.0.0.0") as process:  # noqa: S104 -- that is the point
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        _, err = process.communicate(timeout=10)
    assert first.startswith("fault server on http://127.0.0.1:")
    assert "--allow-host NAME" in err
    assert everywhere(1, ("box",)).endswith("who can reach http://box:1 can use it")

"""Wrong words on the command line: a traceback, silence, or an answer that hid what was asked.

The help of `allow`, `block`, `reset` and `status` showed ``\\b Examples``; `faults -p 80808` ended
in a traceback; `classify --agent clod` was accepted; `run -- /etc/passwd` said that ``[masked]``
could not be started. And `faults` applied its script to the paths of the APIs it knows, so that a
client of any other service was answered 404.
"""

from __future__ import annotations

import http.client
from contextlib import closing

import pytest

from mulligan.cli import main
from mulligan.faults.server import FaultServer


def connected(server: FaultServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)


def told(capfd, *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(argv))
    out, err = capfd.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize("name", ["allow", "block", "reset", "status"])
def test_help_shows_its_examples_and_no_control_characters(capfd, name):
    code, out, _ = told(capfd, name, "--help")
    assert code == 0
    assert "Examples" in out
    assert "\b" not in out
    assert "\\b" not in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("faults", "-p", "80808"), "80808 is not in the range 0<=x<=65535"),
        (("classify", "--agent", "clod", "/dev/null"), "no agent is called 'clod'"),
    ],
)
def test_what_cannot_be_meant_is_named_with_a_hint(capfd, argv, words):
    code, _, err = told(capfd, *argv)
    assert code == 2
    assert words in err
    assert f"hint: mulligan {argv[0]}" in err
    assert "Traceback" not in err


def test_a_program_that_cannot_be_started_is_named(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    code, _, err = told(capfd, "run", "--", "/etc/passwd")
    assert code == 126
    assert "cannot start /etc/passwd: /etc/passwd is not executable" in err
    assert "masked" not in err


@pytest.mark.real
@pytest.mark.parametrize("path", ["/api/v9/orders?x=1", "/anything", "/deep/er/path/"])
def test_the_script_of_the_fault_server_applies_to_paths_of_no_known_api(path):
    with FaultServer("503") as server, closing(connected(server)) as connection:
        connection.request("POST", path, "{}", {"content-type": "application/json"})
        with connection.getresponse() as response:
            response.read()
            assert response.status == 503

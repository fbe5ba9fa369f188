"""The middleware in real server processes that are killed, on stores that they share."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

SERVER = Path(__file__).with_name("order_server.py")
LEASE = 0.8


class Shop:
    """One server process, ended by its own process id."""

    def __init__(self, store: str, log: Path, seconds: float = 0, server: str = "uvicorn") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        arguments = [server, self.port, store, log, seconds, LEASE]
        self.process = subprocess.Popen([sys.executable, str(SERVER), *map(str, arguments)])
        for _ in range(600):
            assert self.process.poll() is None, "the server ended at once"
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.kill()
        pytest.fail("the server did not start within 30 s")

    def post(self, key: str = '"k-1"', path: str = "/orders") -> tuple[int, dict[str, str], bytes]:
        connection = self.begun(key, path)
        try:
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers, answer.read()
        finally:
            connection.close()

    def begun(self, key: str = '"k-1"', path: str = "/orders") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Idempotency-Key": key, "X-Account": "ada", "Content-Type": "application/json"}
        connection.request("POST", path, b'{"amount": 25}', headers)
        return connection

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def shops(tmp_path):
    running: list[Shop] = []

    def start(store: str, **options: Any) -> Shop:
        running.append(Shop(store, tmp_path / "log", **options))
        return running[-1]

    yield start
    for each in running:
        each.kill()


@pytest.fixture
def log(tmp_path):
    def lines() -> list[str]:
        path = tmp_path / "log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    return lines


def wait_for(condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within 10 s")


def test_a_server_that_is_killed_frees_its_key_after_the_lease_and_not_before(common, shops, log):
    url, _ = common
    victim, heir = shops(url, seconds=30), shops(url)
    connection = victim.begun()
    wait_for(log)
    time.sleep(LEASE + 0.1)  # it lives, so its lease is renewed
    assert heir.post()[0] == 409
    victim.kill()
    connection.close()
    killed_at = time.monotonic()
    refused = 0
    while True:
        status, headers, body = heir.post()
        if status != 409:
            break
        assert headers["retry-after"] == "1"
        assert len(log()) == 1  # nothing ran twice before
        refused += 1
        time.sleep(0.05)
    # On a busy machine the last renewal may be late, so only a part of the lease is asked for.
    assert time.monotonic() - killed_at >= LEASE / 4
    assert refused >= 1
    assert status == 201
    assert json.loads(body)["by"] == heir.process.pid
    assert len(log()) == 2
    assert heir.post()[1]["idempotent-replayed"] == "true"
    assert len(log()) == 2


def test_a_server_that_was_stopped_for_longer_than_its_lease_does_not_overwrite(common, shops, log):
    url, _ = common
    zombie, heir = shops(url, seconds=0.3), shops(url)
    connection = zombie.begun()
    wait_for(log)
    os.kill(zombie.process.pid, signal.SIGSTOP)
    while (found := heir.post())[0] == 409:
        time.sleep(0.05)
    assert found[0] == 201
    os.kill(zombie.process.pid, signal.SIGCONT)
    answer = connection.getresponse()
    # Its client gets what was recorded, not what it did itself.
    assert (answer.status, answer.read()) == (201, found[2])
    connection.close()
    assert heir.post()[2] == zombie.post()[2] == found[2]


@pytest.mark.parametrize("server", ["uvicorn", "hypercorn"])
def test_fifty_clients_of_two_servers_execute_once(tmp_path, shops, log, server):
    url = f"sqlite:{tmp_path / 'keys.db'}"
    two = [shops(url, seconds=0.2, server=server) for _ in range(2)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda n: two[n % 2].post(), range(50)))
    assert len(log()) == 1
    assert {status for status, _, _ in answers} <= {201, 409}
    assert len({body for status, _, body in answers if status == 201}) == 1
    assert two[1].post()[1]["idempotent-replayed"] == "true"


def test_a_client_that_leaves_finds_the_response_when_it_comes_back(tmp_path, shops, log):
    shop = shops(f"sqlite:{tmp_path / 'keys.db'}", seconds=0.3)
    shop.begun().close()
    wait_for(log)
    while (found := shop.post())[0] == 409:
        time.sleep(0.05)
    assert found[1]["idempotent-replayed"] == "true"
    assert len(log()) == 1


@pytest.mark.parametrize("server", ["uvicorn", "hypercorn"])
def test_events_arrive_while_the_stream_runs(tmp_path, shops, log, server):
    shop = shops(f"sqlite:{tmp_path / 'keys.db'}", server=server)
    connection = shop.begun(path="/tokens")
    answer = connection.getresponse()
    first = answer.read1()
    assert first.startswith(b"data: 0")
    assert b"data: 2" not in first  # the rest came later
    assert answer.read().endswith(b"data: 2\n\n")
    connection.close()
    assert shop.post(path="/tokens")[0] == 410
    assert len(log()) == 1

"""The server over real sockets, with a client that shows every byte."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mulligan.errors import MulliganError
from mulligan.faults.client_settings import POINTERS, settings
from mulligan.faults.control import CONTROL
from mulligan.testing import FaultServer

pytestmark = pytest.mark.real


def talk(server, data: bytes, timeout: float = 5.0) -> bytes:
    """Send bytes, return all that comes until the end."""
    with socket.create_connection(("127.0.0.1", server.port), timeout) as sock:
        sock.sendall(data)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    return got


def post(server, path="/v1/messages", body=None, **headers) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body or {"model": "m"}), headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


STREAM = {"model": "m", "stream": True}


def test_a_connection_is_used_again(fault_server):
    connection = http.client.HTTPConnection("127.0.0.1", fault_server.port, timeout=5)
    ports = set()
    for _ in range(3):
        connection.request("POST", "/v1/messages", "{}")
        connection.getresponse().read()
        ports.add(connection.sock.getsockname())
    connection.close()
    assert len(ports) == 1
    assert fault_server.totals.requests == 3


def test_a_client_of_http_1_0_gets_a_stream_without_chunks(fault_server):
    body = json.dumps(STREAM).encode()
    head = b"POST /v1/messages HTTP/1.0\r\nhost: localhost\r\nexpect: 100-continue\r\n"
    got = talk(fault_server, head + b"content-length: %d\r\n\r\n" % len(body) + body)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"transfer-encoding" not in got
    assert got.partition(b"\r\n\r\n")[2].startswith(b"event: message_start\n")
    assert got.endswith(b'data: {"type": "message_stop"}\n\n')


def test_a_body_in_chunks_is_read(fault_server):
    data = (
        b"POST /invoices HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
        b'connection: close\r\n\r\n4\r\n{"a"\r\n4;x=y\r\n: 1}\r\n0\r\n\r\n'
    )
    assert b'"a": 1' in talk(fault_server, data)


def test_trailers_are_not_taken_for_the_next_request(fault_server):
    data = (
        b"POST /invoices HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n"
        b"GET http://localhost/invoices HTTP/1.1\r\nhost: evil.example\r\n"
        b"connection: TE, close\r\n\r\n"
    )
    assert re.findall(rb"HTTP/1.1 (\d+)", talk(fault_server, data)) == [b"201", b"200"]


def test_a_client_that_expects_tls_is_not_kept_waiting(fault_server):
    assert talk(fault_server, b"\x16") == b""


def test_the_head_of_the_ledger_is_a_head(fault_server):
    data = b"HEAD /_ledger HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    got = talk(fault_server, data)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.endswith(b"\r\n\r\n")


def test_a_client_that_asks_first_may_go_on(fault_server):
    data = (
        b"POST /invoices HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
        b"content-length: 2\r\nconnection: close\r\n\r\n{}"
    )
    assert talk(fault_server, data).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 ")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\n\r\n", b"421"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nhost: [::1\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\norigin: http://[\r\n\r\n", b"421"),
        *(
            (
                b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
                + size
                + b"\r\nabcde\r\n0\r\n\r\n",
                b"400",
            )
            for size in (b"zz", b"-5", b"0x5", b"1_0", b"")
        ),
        (
            (
                b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
                b"2\r\n{}XX0\r\n\r\n"
            ),
            b"400",
        ),
        (b"GET / HTTP/1.1\nhost: localhost\n\n", b"400"),
        (b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", b"404"),
    ],
)
def test_who_may_not_talk_to_it_is_turned_away(fault_server, head, status):
    """DESIGN: servers of ours check the Host header."""
    assert talk(fault_server, head).startswith(b"HTTP/1.1 " + status)
    assert fault_server.totals.requests == 0


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ", b"431"),
    ],
)
def test_who_sends_too_much_can_still_read_the_answer(fault_server, head, status):
    assert talk(fault_server, head + b"y" * 8_000_000).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_loopback_names_are_welcome(fault_server, host):
    data = f"GET /invoices HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()
    assert talk(fault_server, data).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("fault", ["reset", "lost"])
def test_a_reset_is_a_reset(fault_server, fault):
    fault_server.set(fault)
    with pytest.raises(ConnectionResetError):
        post(fault_server)


def test_a_close_is_an_end_without_an_answer(fault_server):
    fault_server.set("close")
    with pytest.raises(http.client.RemoteDisconnected):
        post(fault_server)


def test_a_dropped_stream_delivers_what_it_sent_and_then_resets(fault_server):
    fault_server.set("drop(2)")
    connection = http.client.HTTPConnection("127.0.0.1", fault_server.port, timeout=5)
    connection.request("POST", "/v1/messages", json.dumps(STREAM))
    response = connection.getresponse()
    assert b"message_start" in response.readline() + response.readline()
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        response.read()
    connection.close()


def test_a_cut_stream_is_seen_to_be_incomplete(fault_server):
    fault_server.set("cut")
    with pytest.raises(http.client.IncompleteRead):
        post(fault_server, body=STREAM)


def test_a_truncated_stream_looks_complete(fault_server):
    fault_server.set("truncate")
    status, _, body = post(fault_server, body=STREAM)
    assert status == 200
    assert b"content_block_delta" in body
    assert b"message_stop" not in body


@pytest.mark.parametrize(("fault", "seen"), [("hang", b""), ("stall", b"content_block_delta")])
def test_silence_lasts_until_the_client_leaves(fault_server, fault, seen):
    fault_server.set(fault)
    body = json.dumps(STREAM).encode()
    head = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", fault_server.port), 0.2) as sock:
        sock.sendall(head % len(body) + body)
        assert seen in all_of(sock)
    until(lambda: fault_server.requests[0].ending == "left")


def all_of(sock: socket.socket) -> bytes:
    """What comes before nothing comes any more."""
    got = b""
    with contextlib.suppress(TimeoutError):
        while piece := sock.recv(65536):
            got += piece
    return got


def until(fact, seconds: float = 1.0) -> None:
    """Wait for a fact that is a matter of moments."""
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_hang_can_be_given_a_length(fault_server, within):
    fault_server.set("hang(0.1s)")
    began = time.monotonic()
    with within(1), pytest.raises(http.client.RemoteDisconnected):
        post(fault_server)
    assert time.monotonic() - began >= 0.1


def test_a_drip_takes_its_time(fault_server):
    fault_server.set("drip(0.02s)")
    began = time.monotonic()
    assert b"message_stop" in post(fault_server, body=STREAM)[2]
    assert time.monotonic() - began >= 0.02 * 10


def test_a_refused_port_refuses_and_comes_back(fault_server):
    fault_server.set("refuse(0.3s),ok")
    with pytest.raises(ConnectionResetError):
        post(fault_server)
    with pytest.raises(ConnectionRefusedError):
        post(fault_server)
    time.sleep(0.4)
    assert post(fault_server)[0] == 200
    assert [entry.outcome for entry in fault_server.requests] == ["refuse(for=0.3s)", "ok"]


def squat(port: int) -> socket.socket:
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen()
    except OSError:
        sock.close()
        raise
    return sock


@pytest.mark.skipif(sys.platform != "linux", reason="other systems guard a bound address less")
def test_nobody_takes_a_port_that_is_closed_for_a_while(fault_server):
    fault_server.set("refuse(0.3s),ok")
    with pytest.raises(ConnectionResetError):
        post(fault_server)
    with pytest.raises(OSError, match="in use"):
        squat(fault_server.port)
    time.sleep(0.4)
    assert post(fault_server)[0] == 200


def test_a_port_that_was_taken_all_the_same_is_waited_for(fault_server, caplog):
    fault_server.set("refuse(0.1s),ok")
    with pytest.raises(ConnectionResetError):
        post(fault_server)
    fault_server._listener._socket.close()  # another process could take the port now
    with squat(fault_server.port):
        until(lambda: caplog.messages)
    until(lambda: is_open(fault_server))
    [said] = caplog.messages
    port = fault_server.port
    assert said == f"another program took port {port} while refuse had it closed; trying on"


def is_open(server) -> bool:
    with contextlib.suppress(ConnectionError):
        return post(server)[0] == 200
    return False


def test_who_leaves_during_a_delay_has_left(fault_server):
    fault_server.set("ok(delay=0.9s)")
    with socket.create_connection(("127.0.0.1", fault_server.port), 1) as sock:
        sock.sendall(b"POST /invoices HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        until(lambda: len(fault_server.requests) == 1)
    until(lambda: fault_server.requests[0].ending == "left", 0.5)
    assert fault_server.totals.left == 1


def test_a_request_that_was_sent_ahead_survives_a_delay(fault_server):
    fault_server.set("ok(delay=0.1s)")
    ask = b"GET /invoices HTTP/1.1\r\nhost: localhost\r\n\r\n"
    last = ask.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    assert talk(fault_server, ask + last).count(b"HTTP/1.1 200 ") == 2


def test_a_refused_port_breaks_off_what_others_have_and_says_so(fault_server):
    fault_server.set("@a -> refuse(0.1s); @b -> hang")
    ask = b"POST /invoices HTTP/1.1\r\nhost: localhost\r\nx-client: %b\r\ncontent-length: 0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", fault_server.port), 1) as other:
        other.sendall(ask % b"b")
        until(lambda: len(fault_server.requests) == 1)
        with pytest.raises(ConnectionResetError):
            talk(fault_server, ask % b"a")
        with pytest.raises(ConnectionResetError):
            other.recv(1)
    until(lambda: fault_server.requests[0].ending != "open")
    assert [entry.ending for entry in fault_server.requests] == ["reset", "done"]
    assert fault_server.totals.left == 0


def test_a_plans_limit_ends_at_the_instant_it_stated(fault_server):
    fault_server.set("plan(0s)")  # resets are whole seconds, so this is less than one away
    status, headers, _ = post(fault_server)
    assert status == 429
    wait = int(headers["anthropic-ratelimit-unified-reset"]) - time.time()
    assert wait <= 1
    time.sleep(max(wait, 0))
    assert post(fault_server)[0] == 200
    assert fault_server.totals.early == 0


def test_of_twenty_requests_at_once_none_is_early_and_the_next_one_is(fault_server):
    fault_server.set("429(retry-after=30)")
    ask = b"POST /invoices HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
    with contextlib.ExitStack() as stack:
        where = ("127.0.0.1", fault_server.port)
        socks = [stack.enter_context(socket.create_connection(where, 5)) for _ in range(20)]
        for sock in socks:
            sock.sendall(ask[:10])
        time.sleep(0.1)  # nothing tells when the server has seen what it does not answer
        for sock in socks:
            sock.sendall(ask[10:])
            assert sock.recv(65536).startswith(b"HTTP/1.1 429 ")
        assert fault_server.totals.requests == 20
        assert fault_server.totals.early == 0
        socks[0].sendall(ask + ask)
        until(lambda: fault_server.totals.early == 2)


def test_the_script_can_be_changed_over_http(fault_server):
    assert post(fault_server, "/_script", "x", **{CONTROL: "1"})[0] == 400
    connection = http.client.HTTPConnection("127.0.0.1", fault_server.port, timeout=5)
    connection.request("POST", "/_script", "503,ok", {CONTROL: "1"})
    assert json.loads(connection.getresponse().read()) == {"script": "503x1,ok"}
    connection.request("GET", "/_script")
    assert json.loads(connection.getresponse().read()) == {"script": "503x1,ok"}
    toml = '[[rules]]\npath = "/invoices"\nsteps = "418"\n[limits]\nrequests = "1/60s"'
    headers = {"content-type": "application/toml", CONTROL: "1"}
    connection.request("POST", "/_script", toml, headers)
    assert connection.getresponse().read()
    connection.close()
    assert post(fault_server, "/invoices")[0] == 418
    assert post(fault_server, "/invoices")[0] == 429


def test_the_ledger_can_be_read_and_begun_again_over_http(fault_server):
    post(fault_server)
    connection = http.client.HTTPConnection("127.0.0.1", fault_server.port, timeout=5)
    connection.request("GET", "/_ledger")
    ledger = json.loads(connection.getresponse().read())
    assert ledger["totals"]["requests"] == 1
    assert ledger["entries"][0]["outcome"] == "ok"
    connection.request("DELETE", "/_ledger", headers={CONTROL: "1"})
    connection.getresponse().read()
    connection.request("GET", "/_nothing")
    assert connection.getresponse().status == 404
    connection.close()
    assert fault_server.totals.requests == 0


def test_two_servers_do_not_share_a_port():
    began = time.monotonic()
    with FaultServer() as first:
        second = FaultServer(port=first.port)
        with pytest.raises(MulliganError, match=r"^cannot listen on 127\.0\.0\.1:"):
            second.start()
        assert post(first)[0] == 200
    assert time.monotonic() - began < 5  # it used to wait ten seconds for a thread that had died
    with second:
        assert post(second)[0] == 200


def test_a_server_that_was_stopped_starts_again_where_it_was():
    server = FaultServer("429,ok")
    with server:
        assert post(server)[0] == 429
        where = server.url
        with pytest.raises(MulliganError, match=f"^the fault server runs already, on {where}$"):
            server.start()
    with server:
        assert post(server)[0] == 200
        assert server.url == where
    assert server.totals.requests == 2


def test_a_server_that_is_never_started_takes_no_port():
    server = FaultServer()
    assert server.totals.requests == 0
    with pytest.raises(MulliganError, match=r"^the fault server takes a free port when it starts;"):
        assert server.url


def test_stopping_gives_the_port_back_and_leaves_nobody_waiting():
    server = FaultServer("hang").start()
    port = server.port
    with socket.create_connection(("127.0.0.1", port), 1) as sock:
        sock.sendall(b"POST /invoices HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        until(lambda: len(server.requests) == 1)
        server.stop()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    server.stop()
    with FaultServer(port=port) as again:
        assert again.port == port


@pytest.mark.parametrize("pointer", POINTERS, ids=lambda pointer: pointer.name)
def test_an_environment_points_its_program(fault_server, monkeypatch, pointer):
    monkeypatch.setenv("NO_PROXY", "mine")
    env = fault_server.env(pointer.name, "bob")
    assert env[pointer.key] == "mulligan-bob"
    assert env["NO_PROXY"] == "127.0.0.1,mine"
    if pointer.url:
        assert env[pointer.url] == fault_server.url + pointer.suffix
    if pointer.home:
        file = Path(env[pointer.home], pointer.file)
        assert file.read_text(encoding="utf-8") == settings(pointer.name, fault_server.url)
        fault_server.stop()
        assert not file.exists()
    assert not any(env[name] for name in pointer.without)


def test_names_that_are_allowed_are_so_in_any_case():
    with FaultServer(allowed_hosts=("Faults.Test",)) as server:
        for name in ("Faults.Test", "faults.test"):
            assert post(server, host=name)[0] == 200


def test_it_starts_about_as_fast_as_what_it_is_made_of():
    def least(code):
        timed = f"import time; t = time.process_time()\n{code}\nprint(time.process_time() - t)"
        run = [sys.executable, "-c", timed]
        return min(float(subprocess.check_output(run, timeout=20)) for _ in range(5))

    ours = least("from mulligan.testing import FaultServer\nFaultServer().__enter__()")
    assert ours < 6 * least("import asyncio, http.server")


def test_importing_mulligan_loads_none_of_it():
    code = (
        "import sys, mulligan, mulligan.testing\n"
        "print([m for m in sys.modules if m.startswith('mulligan.faults')])"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], timeout=20)
    assert loaded.strip() == b"[]"


def test_a_bug_of_the_server_never_looks_like_an_ordered_fault(fault_server):
    ledger, fault_server._service.ledger = fault_server._service.ledger, None
    status, _, body = post(fault_server)
    fault_server._service.ledger = ledger
    assert status == 500
    assert b"the fault server itself failed: AttributeError(" in body


def test_who_hears_of_requests_may_look_at_the_server():
    heard: list[int] = []
    with FaultServer(hears=lambda _: heard.append(server.totals.requests)) as server:
        assert [post(server)[0] for _ in range(2)] == [200, 200]
    assert heard == [1, 2]


def test_a_bug_of_who_hears_is_not_the_clients(caplog):
    def hears(_: object) -> None:
        raise LookupError("a bug")

    with FaultServer(hears=hears) as server:
        assert post(server)[0] == 200
        assert server.requests[0].ending == "done"
    assert caplog.messages == ["hears failed for request 1"]

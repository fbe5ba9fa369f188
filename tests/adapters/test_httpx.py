"""Guarded clients of httpx and httpx2, plain, on asyncio and on trio, against a real server."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from typing import Any

import httpx
import httpx2
import pytest

import mulligan
from mulligan.testing import FaultServer

from .conftest import QUESTION, Client

pytestmark = pytest.mark.real


def guard(**options: Any) -> mulligan.Guard:
    return mulligan.Guard("api", **options)


@pytest.fixture
def plain():
    """An httpx client, closed after the test."""
    with httpx.Client(timeout=60) as made:
        yield made


def test_a_refusal_is_retried_and_its_answer_returned(client, fault_server, clock):
    fault_server.set("503x2, ok")
    answer = client.send(guard(), "POST", f"{fault_server.url}/v1/messages", json=QUESTION)
    assert answer.status_code == 200
    assert fault_server.totals.requests == 3
    assert clock.sleeps == [0.25, 0.5]


def test_the_last_response_is_returned_and_tells_its_story(client, fault_server, clock):
    fault_server.set("503")
    answer = client.send(guard(attempts=3), "GET", f"{fault_server.url}/invoices")
    assert answer.status_code == 503
    assert answer.json()
    assert answer.headers["x-should-retry"] == "false"
    story = answer.extensions["mulligan"]
    assert (story.attempts, story.ending, story.waited) == (3, "exhausted", 0.75)
    with pytest.raises(client.library.HTTPStatusError) as caught:
        answer.raise_for_status()
    assert mulligan.story(caught.value) == story
    assert fault_server.totals.requests == 3


def test_an_answer_that_waiting_cannot_fix_is_returned_at_once(client, fault_server, clock):
    fault_server.set("auth")
    answer = client.send(guard(), "POST", f"{fault_server.url}/v1/messages", json=QUESTION)
    assert (answer.status_code, fault_server.totals.requests, clock.sleeps) == (401, 1, [])


def test_a_success_is_not_touched(client, fault_server, clock):
    answer = client.send(guard(), "POST", f"{fault_server.url}/v1/messages", json=QUESTION)
    assert "x-should-retry" not in answer.headers
    assert "mulligan" not in answer.extensions
    assert answer.elapsed.total_seconds() > 0


def test_the_error_of_the_last_attempt_is_the_clients_own(client, fault_server, clock):
    fault_server.set("reset")
    with pytest.raises(client.library.ReadError) as caught:
        client.send(guard(attempts=3), "GET", f"{fault_server.url}/invoices")
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.attempts, fault_server.totals.requests) == (3, 3)
    assert caught.value.request.method == "GET"
    assert caught.value.__notes__ == [story.note]


def test_a_body_that_is_cut_is_retried(client, fault_server, clock):
    fault_server.set("cut(1), truncate(0), ok")
    answer = client.send(guard(), "POST", f"{fault_server.url}/v1/messages", json=QUESTION)
    assert answer.json()["stop_reason"] == "end_turn"
    assert fault_server.totals.requests == 3


def test_the_time_that_the_server_names_is_waited(client, fault_server, clock):
    fault_server.set("429(retry-after=40), ok")
    client.send(guard(), "POST", f"{fault_server.url}/v1/messages", json=QUESTION)
    assert clock.sleeps == [40]


# Effects


def test_a_lost_reply_to_a_write_is_not_repeated_blindly(client, fault_server, clock):
    fault_server.set("POST /invoices -> lost")
    with pytest.raises(client.library.TransportError) as caught:
        client.send(guard(), "POST", f"{fault_server.url}/invoices", json={"eur": 700})
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.because == (
        "not retried: POST 127.0.0.1 may have been applied; if repeating is harmless, set "
        'effects="read" or effects="idempotent"'
    )
    assert (fault_server.totals.requests, fault_server.totals.effects) == (1, 1)


def test_a_write_with_a_key_is_repeated_and_done_once(client, fault_server, clock):
    fault_server.set("POST /invoices -> lostx2, ok")
    headers = {"Idempotency-Key": "i-7"}
    url = f"{fault_server.url}/invoices"
    client.send(guard(), "POST", url, json={"eur": 700}, headers=headers)
    totals = fault_server.totals
    assert (totals.requests, totals.effects, totals.duplicates) == (3, 1, 0)


def test_keys_are_added_to_writes_where_they_are_asked_for(client, fault_server, clock):
    fault_server.set("POST /invoices -> lost, ok")
    url = f"{fault_server.url}/invoices"
    client.send(guard(), "POST", url, json={"eur": 7}, wraps={"keys": True})
    client.send(guard(), "POST", url, json={"eur": 7}, wraps={"keys": True})
    client.send(guard(), "GET", url, wraps={"keys": True})
    first, again, second, read = (entry.key for entry in fault_server.requests)
    assert first == again != second
    assert read == ""
    assert fault_server.totals.effects == 2


def test_the_key_of_an_operation_is_the_same_when_it_is_done_again(plain, fault_server, clock):
    client = guard().wrap(plain, keys=True)
    fault_server.set("POST /invoices -> 400")  # nothing is kept of an operation that failed

    def pay(eur: int) -> Any:
        return client.post(f"{fault_server.url}/invoices", json={"eur": eur}).raise_for_status()

    for _ in range(2):
        with pytest.raises(httpx.HTTPStatusError):
            guard().once("order-7", pay, 700)
    first, second = (entry.key for entry in fault_server.requests)
    assert first == second
    assert first.startswith("order-7-")


def test_the_caller_says_that_a_post_only_looks(client, fault_server, clock):
    fault_server.set("POST /invoices -> lost, ok")
    with mulligan.effects("read"):
        client.send(guard(), "POST", f"{fault_server.url}/invoices", json={})
    assert fault_server.totals.requests == 2


def test_a_redirect_that_was_carried_out_makes_the_rest_doubtful(client, fault_server, clock):
    """The POST was applied and answered with 303; that the page behind it fails proves nothing."""
    fault_server.set("POST /invoices -> 303(/invoices); GET /invoices -> 503")
    url = f"{fault_server.url}/invoices"
    answer = client.send(guard(), "POST", url, json={"eur": 700}, follow_redirects=True)
    assert answer.status_code == 503
    assert answer.extensions["mulligan"].ending == "maybe_applied"
    assert [entry.method for entry in fault_server.requests] == ["POST", "GET"]


def test_a_connection_lost_behind_a_redirect_is_doubtful_too(client, fault_server, clock):
    fault_server.set("POST /invoices -> 303(/invoices); GET /invoices -> reset")
    url = f"{fault_server.url}/invoices"
    with pytest.raises(client.library.ReadError) as caught:
        client.send(guard(), "POST", url, json={"eur": 700}, follow_redirects=True)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "maybe_applied"
    assert [entry.method for entry in fault_server.requests] == ["POST", "GET"]


# Bodies


def test_a_pool_of_one_connection_survives_fifty_retries(client, fault_server, clock):
    """E-E3."""
    fault_server.set("503x50, ok")
    limits = client.library.Limits(max_connections=1, max_keepalive_connections=1)
    answer = client.send(
        guard(attempts=60, breaker=False, tokens=False, patience="1d"),
        *("GET", f"{fault_server.url}/invoices"),
        limits=limits,
        timeout=client.library.Timeout(5, pool=0.5),
    )
    assert (answer.status_code, fault_server.totals.requests) == (200, 51)


# httpx nests five async generators, and trio warns of those whose stream is not read to its end.
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
def test_a_pool_of_one_connection_survives_fifty_streams(client, fault_server, clock):
    fault_server.set("503x25, error-event(1)x24, ok")
    limits = client.library.Limits(max_connections=1, max_keepalive_connections=1)
    _, body = client.stream(
        guard(attempts=60, breaker=False, tokens=False, patience="1d"),
        f"{fault_server.url}/v1/messages",
        limits=limits,
        timeout=client.library.Timeout(5, pool=0.5),
    )
    assert b"message_stop" in body
    assert fault_server.totals.requests == 50


def test_a_file_is_sent_whole_on_every_attempt(fault_server, clock):
    fault_server.set("PUT /invoices/1 -> 503x2, ok")
    file = io.BytesIO(b'{"eur": 7}')
    with guard().wrap(httpx.Client()) as client:
        client.put(f"{fault_server.url}/invoices/1", content=file)
    assert len({entry.body_hash for entry in fault_server.requests}) == 1
    assert fault_server.totals.requests == 3


def test_a_form_with_a_file_is_sent_whole_on_every_attempt(fault_server, clock):
    fault_server.set("PUT /invoices/1 -> 503x2, ok")
    files = {"f": io.BytesIO(b"x" * 100_000)}
    with guard().wrap(httpx2.Client()) as client:
        client.put(f"{fault_server.url}/invoices/1", files=files)
    assert len({entry.body_hash for entry in fault_server.requests}) == 1
    assert fault_server.totals.requests == 3


def test_a_body_that_can_be_read_once_is_refused_before_the_first_try(client, fault_server, clock):
    async def later() -> Any:
        yield b"{}"

    body: Any = later() if client.world else iter([b"{}"])
    with pytest.raises(mulligan.SettingError, match=r"which can be read only once"):
        client.send(guard(), "PUT", f"{fault_server.url}/invoices/1", content=body)
    assert fault_server.totals.requests == 0


# Bounds


def test_an_open_circuit_is_a_connection_that_failed(client, fault_server, clock):
    fault_server.set("503")
    short = guard(attempts=2, when_open="fail", breaker=mulligan.Breaker(failures=2))
    url = f"{fault_server.url}/invoices"
    client.send(short, "GET", url)
    with pytest.raises(client.library.ConnectError) as caught:
        client.send(short, "GET", url)
    error: Any = caught.value
    assert error.request.url == url
    assert issubclass(type(error), mulligan.CircuitOpen)
    assert error.retry_in > 0
    assert fault_server.totals.requests == 2
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- its own
    assert isinstance(again, mulligan.CircuitOpen)
    assert isinstance(again, client.library.ConnectError)
    assert (str(again), again.retry_in) == (str(error), error.retry_in)


def test_the_deadline_bounds_all_attempts_and_leaves_as_a_timeout_of_the_client(
    plain, fault_server
):
    fault_server.set("hang")
    client = guard(deadline=0.3).wrap(plain)
    with pytest.raises(httpx.ReadTimeout) as caught:
        client.get(f"{fault_server.url}/invoices")
    assert mulligan.story(caught.value) is not None
    assert fault_server.totals.requests == 1


def test_the_deadline_cuts_an_async_attempt(fault_server):
    fault_server.set("hang")
    for world in ("asyncio", "trio"):
        with pytest.raises(httpx2.ReadTimeout) as caught:
            Client(f"httpx2-{world}").send(
                guard(deadline=0.3), "GET", f"{fault_server.url}/invoices", timeout=60
            )
        assert mulligan.story(caught.value) is not None


def test_the_timeout_of_the_client_is_for_each_attempt(client, fault_server, clock):
    fault_server.set("hangx2, ok")
    answer = client.send(guard(), "GET", f"{fault_server.url}/invoices", timeout=0.3)
    assert (answer.status_code, fault_server.totals.requests) == (200, 3)


def test_a_service_shortens_the_timeouts_of_the_client_and_never_lengthens_them(
    fault_server, clock
):
    seen: list[Any] = []
    with httpx.Client(
        timeout=httpx.Timeout(30, connect=2),
        event_hooks={"request": [lambda request: seen.append(request.extensions["timeout"])]},
    ) as client:
        view = mulligan.Guard("timed", service="anthropic").wrap(client)
        view.get(f"{fault_server.url}/invoices")
        view.get(f"{fault_server.url}/invoices", timeout=200)
    assert seen[0] == {"connect": 2, "read": 30, "write": 30, "pool": 30}
    assert seen[1] == {"connect": 10, "read": 60, "write": 120, "pool": 120}


# Views


def test_the_client_itself_stays_as_it_was(plain, fault_server, clock):
    fault_server.set("503")
    before = dict(vars(plain))
    view = guard(attempts=2).wrap(plain)
    assert isinstance(view, httpx.Client)
    assert type(view).__name__ == "Client"
    assert view.get(f"{fault_server.url}/invoices").status_code == 503
    assert plain.get(f"{fault_server.url}/invoices").status_code == 503
    assert fault_server.totals.requests == 2 + 1
    assert vars(plain).keys() == before.keys()


def test_what_changes_on_the_client_changes_on_the_view(plain, fault_server, clock):
    view = guard().wrap(plain)
    plain.headers["x-client"] = "later"
    view.get(f"{fault_server.url}/invoices")
    assert fault_server.requests[0].client == "later"


def test_wrapping_twice_is_harmless(plain, fault_server, clock):
    fault_server.set("503")
    once = guard(attempts=3)
    view = once.wrap(plain)
    assert once.wrap(view) is view
    other = guard(attempts=2).wrap(view)
    assert other.get(f"{fault_server.url}/invoices").status_code == 503
    assert fault_server.totals.requests == 2


def test_closing_a_view_closes_the_client_and_collecting_it_does_not(fault_server, clock):
    client = httpx.Client()
    guard().wrap(client).get(f"{fault_server.url}/invoices")
    gc.collect()
    assert not client.is_closed
    view = guard().wrap(client)
    view.get(f"{fault_server.url}/invoices")
    view.close()
    assert client.is_closed


def test_a_copied_view_is_guarded(plain, fault_server, clock):
    fault_server.set("503x2, ok")
    view = copy.copy(guard().wrap(plain))
    assert view.get(f"{fault_server.url}/invoices").status_code == 200


def test_the_proxies_of_the_environment_are_kept(clock, monkeypatch):
    with FaultServer("503x2, ok", allowed_hosts=("shop.invalid",)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for name in ("NO_PROXY", "no_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        with httpx.Client() as client:
            guard().wrap(client).get("http://shop.invalid/invoices")
        assert proxy.ledger.entries[0].path.endswith("/invoices")


@pytest.mark.parametrize(
    "options",
    [
        {"fallback": 1},
        {"fallback": None},
        {"verify": len},
        {"resume": len, "effects": "read"},
        {"timeout_to": "t"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_for_functions_are_refused(options):
    name = next(iter(options))
    with pytest.raises(mulligan.SettingError, match=rf"^{name}= is for functions"):
        guard(**options).wrap(httpx.Client())


def test_a_transport_that_retries_by_itself_is_named_once(caplog):
    with httpx.Client(transport=httpx.HTTPTransport(retries=7)) as client:
        guard().wrap(client)
        guard().wrap(client)
    [record] = caplog.records
    assert record.getMessage() == (
        "HTTPTransport(retries=7) retries by itself, and a guard cannot switch it off: "
        "its requests are not counted as attempts; make the client without it"
    )


# What callers share


def test_a_guard_around_a_guarded_client_does_not_multiply(plain, fault_server, clock):
    fault_server.set("503")
    inner = guard(attempts=3).wrap(plain)
    outer = mulligan.Guard("outer", attempts=4, effects="read")

    def fetch() -> Any:
        return inner.get(f"{fault_server.url}/invoices").raise_for_status()

    with pytest.raises(httpx.HTTPStatusError):
        outer.call(fetch)
    assert fault_server.totals.requests == 3


def test_an_outer_guard_may_wait_for_a_limit_that_the_inner_one_would_not(
    plain, fault_server, clock
):
    """The header that stops an SDK does not stop a guard that is more patient."""
    fault_server.set("429(retry-after=1000), ok")
    inner = guard(in_place="10s").wrap(plain)
    outer = mulligan.Guard("outer", effects="read", in_place="1h", patience="2h")

    def fetch() -> Any:
        return inner.get(f"{fault_server.url}/invoices").raise_for_status()

    assert outer.call(fetch).status_code == 200
    assert sum(clock.sleeps) >= 1000


def test_a_request_of_the_same_client_inside_an_attempt_is_its_own_call(plain, fault_server, clock):
    """An Auth that fetches a token by the same client: each request has its attempts."""
    fault_server.set("PUT /invoices/1 -> 503, ok; GET /invoices -> 503, ok")
    view = guard().wrap(plain)

    class Login(httpx.Auth):
        def auth_flow(self, request: httpx.Request) -> Any:
            view.get(f"{fault_server.url}/invoices")
            yield request

    view.put(f"{fault_server.url}/invoices/1", json={}, auth=Login())
    assert [entry.method for entry in fault_server.requests] == ["GET", "GET", "PUT", "GET", "PUT"]


def test_a_server_on_a_bad_day_and_three_hundred_requests_at_once(clock):
    import asyncio

    with FaultServer("503:0.2, reset:0.1, cut(1):0.1, ok", seed=5) as server:

        async def main() -> list[int]:
            limits = httpx2.Limits(max_connections=20)
            async with httpx2.AsyncClient(limits=limits, timeout=30) as client:
                view = mulligan.Guard("crowd", tokens=False, breaker=False).wrap(client)
                answers = await asyncio.gather(
                    *(view.post(f"{server.url}/v1/messages", json=QUESTION) for _ in range(300))
                )
            return [answer.status_code for answer in answers]

        assert asyncio.run(main()) == [200] * 300

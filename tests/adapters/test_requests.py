"""Guarded sessions of requests."""

from __future__ import annotations

import io

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

import mulligan

from .conftest import QUESTION

pytestmark = pytest.mark.real


@pytest.fixture
def guard(clock) -> mulligan.Guard:
    return mulligan.Guard("api", attempts=4)


@pytest.fixture
def session():
    with requests.Session() as made:
        yield made


def test_refusals_lost_connections_and_cut_bodies_are_retried(fault_server, guard, session):
    fault_server.set("503, reset, cut(1), ok")
    answer = (
        guard.but(attempts=5).wrap(session).post(f"{fault_server.url}/v1/messages", json=QUESTION)
    )
    assert answer.json()["stop_reason"] == "end_turn"
    assert fault_server.totals.requests == 4


def test_the_last_response_is_returned_and_its_exception_tells_the_story(
    fault_server, guard, session
):
    fault_server.set("503")
    answer = guard.wrap(session).get(f"{fault_server.url}/invoices")
    with pytest.raises(requests.HTTPError) as caught:
        answer.raise_for_status()
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == fault_server.totals.requests == 4


def test_the_error_of_the_last_attempt_is_the_sessions_own(fault_server, guard, session):
    fault_server.set("reset")
    with pytest.raises(requests.ConnectionError) as caught:
        guard.wrap(session).get(f"{fault_server.url}/invoices")
    assert mulligan.story(caught.value) is not None
    assert fault_server.totals.requests == 4


def test_retries_of_urllib3_are_off_on_the_view_and_stay_on_the_session(
    fault_server, guard, session
):
    retries = Retry(total=3, status_forcelist=[503], backoff_factor=0, allowed_methods=None)
    session.mount("http://", HTTPAdapter(max_retries=retries))
    fault_server.set("503")
    view = guard.wrap(session)
    assert view.get(f"{fault_server.url}/invoices").status_code == 503
    assert fault_server.totals.requests == 4
    fault_server.clear()
    with pytest.raises(requests.exceptions.RetryError):
        session.get(f"{fault_server.url}/invoices")
    assert fault_server.totals.requests == 4
    assert isinstance(view, requests.Session)


def test_redirects_belong_to_the_attempt(fault_server, guard, session):
    fault_server.set(
        "GET /invoices -> 302(/invoices/1), 302(/invoices/1), ok; GET /invoices/1 -> 503"
    )
    answer = guard.but(attempts=2).wrap(session).get(f"{fault_server.url}/invoices")
    assert answer.status_code == 503
    paths = [entry.path for entry in fault_server.requests]
    assert paths == ["/invoices", "/invoices/1"] * 2


def test_a_write_whose_redirect_failed_is_not_repeated(fault_server, guard, session):
    fault_server.set("POST /invoices -> 303(/invoices); GET /invoices -> 503")
    answer = guard.wrap(session).post(f"{fault_server.url}/invoices", json={"eur": 7})
    assert answer.status_code == 503
    assert [entry.method for entry in fault_server.requests] == ["POST", "GET"]


def test_a_lost_reply_to_a_write_is_not_repeated_without_a_key(fault_server, guard, session):
    fault_server.set("POST /invoices -> lost")
    with pytest.raises(requests.ConnectionError) as caught:
        guard.wrap(session).post(f"{fault_server.url}/invoices", json={"eur": 7})
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "maybe_applied"
    assert fault_server.totals.effects == 1


def test_a_write_with_keys_is_done_once(fault_server, guard, session):
    fault_server.set("POST /invoices -> lostx2, ok")
    guard.wrap(session, keys=True).post(f"{fault_server.url}/invoices", json={"eur": 7})
    totals = fault_server.totals
    assert (totals.requests, totals.effects, totals.duplicates) == (3, 1, 0)


def test_a_file_is_sent_from_where_it_stood_on_every_attempt(fault_server, guard, session):
    fault_server.set("PUT /invoices/1 -> 503x2, ok")
    file = io.BytesIO(b'skipped{"eur": 7}')
    file.seek(7)
    guard.wrap(session).put(f"{fault_server.url}/invoices/1", data=file)
    assert len({entry.body_hash for entry in fault_server.requests}) == 1
    assert fault_server.totals.requests == 3


def test_a_body_that_can_be_read_once_is_refused_before_the_first_try(fault_server, guard, session):
    with pytest.raises(mulligan.SettingError, match=r"which can be read only once"):
        guard.wrap(session).put(f"{fault_server.url}/invoices/1", data=iter([b"{}"]))
    assert fault_server.totals.requests == 0


def test_an_open_circuit_is_a_connection_that_failed(fault_server, clock, session):
    fault_server.set("503")
    breaker = mulligan.Breaker(failures=2)
    guard = mulligan.Guard("api", attempts=2, breaker=breaker, when_open="fail")
    view = guard.wrap(session)
    view.get(f"{fault_server.url}/invoices")
    with pytest.raises(requests.ConnectionError) as caught:
        view.get(f"{fault_server.url}/invoices")
    assert issubclass(type(caught.value), mulligan.CircuitOpen)


def test_the_timeout_is_for_each_attempt_and_the_deadline_for_all(fault_server, session, clock):
    fault_server.set("hangx2, ok")
    view = mulligan.Guard("api").wrap(session)
    assert view.get(f"{fault_server.url}/invoices", timeout=(5, 0.3)).status_code == 200
    assert fault_server.totals.requests == 3


def test_a_streamed_refusal_gives_its_connection_back(fault_server, session, clock):
    session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True))
    fault_server.set("503x20, ok")
    options = {"attempts": 30, "breaker": False, "tokens": False, "patience": "1d"}
    view = mulligan.Guard("api", **options).wrap(session)  # type: ignore[arg-type]
    with view.get(f"{fault_server.url}/invoices", stream=True) as answer:
        assert answer.status_code == 200
    assert fault_server.totals.requests == 21


def test_wrapping_twice_is_harmless(guard, session):
    view = guard.wrap(session)
    assert guard.wrap(view) is view

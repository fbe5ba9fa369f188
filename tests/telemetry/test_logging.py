"""Events as log records: full or sampled, with every fact as a field."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

import mulligan
from mulligan import Exponential, LogListener, Policy, Rule
from mulligan.testing import Scripted, status_error, virtual_time

STEADY = Policy(
    name="steady",
    rules={mulligan.Kind.SERVER: Rule(attempts=4, backoff=Exponential(jitter="none"))},
    effects=mulligan.Effects.READ,
)


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []

    def emit(self, record):
        self.records.append(record)


@pytest.fixture
def records(caplog):
    caplog.set_level(logging.DEBUG, logger="mulligan")
    kept, logger = _Kept(), logging.getLogger("mulligan")
    logger.addHandler(kept)
    yield kept.records
    logger.removeHandler(kept)


def run(*outcomes, **options):
    with virtual_time():
        guard = mulligan.Guard("acme", policy=options.pop("policy", STEADY), **options)
        try:
            return guard.call(Scripted(*outcomes))
        except Exception as error:  # noqa: BLE001 -- what the test asks for
            return error


def said(records):
    return [(record.levelname, record.getMessage()) for record in records]


def test_full_tells_every_attempt_and_the_end(records):  # R-X3
    run(status_error(500), listeners=[LogListener()])
    assert said(records) == [
        (
            "INFO",
            "acme: scripted attempt 1 failed: 500 (server): status 500; retry in 500ms, by backoff",
        ),
        (
            "INFO",
            "acme: scripted attempt 2 failed: 500 (server): status 500; retry in 1s, by backoff",
        ),
        (
            "INFO",
            "acme: scripted attempt 3 failed: 500 (server): status 500; retry in 2s, by backoff",
        ),
        (
            "INFO",
            (
                "acme: scripted attempt 4 failed: 500 (server): status 500; "
                "attempt 4 of 4 failed with 500 (server)"
            ),
        ),
        (
            "WARNING",
            (
                "acme: scripted gave up after 4 attempts, 3.5s of waiting: "
                "attempt 4 of 4 failed with 500 (server): status 500"
            ),
        ),
    ]


def test_sampled_tells_the_first_the_last_and_the_final_failure(records):  # R-X2
    run(status_error(500), listeners=[LogListener("sampled")])
    facts = [record.mulligan for record in records]
    assert [(fact["event"], fact["attempt"]) for fact in facts] == [
        ("failed", 1),
        ("failed", 4),
        ("ended", 4),
    ]


def test_sampled_tells_the_first_failure_and_the_recovery(records):  # R-X2
    run(
        status_error(500),
        status_error(500),
        status_error(500),
        "ok",
        listeners=[LogListener("sampled")],
    )
    facts = [record.mulligan for record in records]
    assert [(fact["event"], fact["attempt"]) for fact in facts] == [("failed", 1), ("recovered", 4)]
    assert records[-1].getMessage() == "acme: scripted succeeded on attempt 4 after 3.5s of waiting"


def test_sampled_and_full_tell_the_same_of_a_call_that_is_tried_once(records):
    for detail in ("full", "sampled"):
        run(status_error(401), listeners=[LogListener(detail)])
    half = len(records) // 2
    assert said(records)[:half] == said(records)[half:]


def test_all_events_reach_the_other_listeners_however_the_log_is_sampled():
    events: list[object] = []
    run(status_error(500), listeners=[LogListener("sampled"), events.append])
    assert len(events) == 5


def test_an_attempt_has_its_facts_as_fields(records):  # R-X2, R-X3
    error = status_error(
        429, headers={"retry-after": "3"}, body={"error": {"code": "slow", "message": "wait a bit"}}
    )
    run(error, "ok", policy="default", listeners=[LogListener()])
    facts = records[0].mulligan
    request_id = facts.pop("request_id")
    assert len(request_id) == 16
    assert facts == {
        "event": "failed",
        "at": 1_767_225_600.0,
        "target": "acme",
        "name": "scripted",
        "attempt": 1,
        "kind": "rate_limit",
        "status": 429,
        "code": "slow",
        "message": "wait a bit",
        "elapsed": 0.0,
        "decision": "RetryAfter",
        "delay": 3.0,
        "because": "retry in 3s, as retry-after says",
        "remark": None,
    }


def test_an_end_has_its_facts_as_fields(records):  # R-X1, R-X3
    run(
        status_error(429, headers={"retry-after": "3600"}),
        policy="default",
        listeners=[LogListener()],
    )
    facts = records[-1].mulligan
    assert facts["event"] == "ended"
    assert (facts["ending"], facts["kind"], facts["status"]) == ("parked", "rate_limit", 429)
    assert facts["retry_at"] == facts["at"] + 3600
    assert (facts["waited"], facts["attempt"]) == (0.0, 1)
    assert records[-1].levelname == "INFO"


def test_a_recovery_has_its_facts_as_fields(records):
    run(status_error(500), status_error(500), "ok", listeners=[LogListener()])
    facts = records[-1].mulligan
    assert (facts["event"], facts["attempt"]) == ("recovered", 3)
    assert (facts["waited"], facts["elapsed"]) == (1.5, 1.5)


def test_every_attempt_says_how_long_ago_the_first_one_failed(records):  # R-X2
    run(status_error(500), listeners=[LogListener()])
    assert [record.mulligan["elapsed"] for record in records] == [0, 0.5, 1.5, 3.5, 3.5]


def test_all_attempts_of_a_call_have_one_request_id(records):
    run(status_error(500), listeners=[LogListener()])
    run(status_error(500), listeners=[LogListener()])
    ids = [record.mulligan["request_id"] for record in records]
    assert ids == [ids[0]] * 5 + [ids[5]] * 5
    assert ids[0] != ids[5]


def test_the_fields_are_plain_enough_for_json(records):
    run(status_error(500), status_error(429), "ok", listeners=[LogListener(successes=True)])
    run("ok", listeners=[LogListener(successes=True)])
    for record in records:
        assert json.loads(json.dumps(record.mulligan)) == record.mulligan


def test_successes_are_told_on_request_only(records):
    run("ok", listeners=[LogListener()])
    assert said(records) == []
    run("ok", listeners=[LogListener(successes=True)])
    assert said(records) == [("DEBUG", "acme: scripted succeeded")]


def test_a_logger_of_ones_own_is_used(records, caplog):
    caplog.set_level(logging.INFO, logger="agents.retries")
    own = logging.getLogger("agents.retries")
    run(status_error(401), listeners=[LogListener(logger=own)])
    assert records == []
    assert {record.name for record in caplog.records} == {"agents.retries"}


def test_a_percent_sign_in_a_message_is_no_format(records):
    run(status_error(500, "98 % used, %s %d left"), listeners=[LogListener()])
    assert "98 % used, %s %d left" in records[0].getMessage()


def test_a_logger_that_does_not_listen_costs_no_record(caplog):
    caplog.set_level(logging.WARNING, logger="mulligan")
    run(status_error(500), "ok", listeners=[LogListener()])
    assert caplog.records == []


# No listener


def test_the_first_exhaustion_that_nobody_hears_is_a_warning(records):  # R-X1
    run(status_error(500))
    assert [record.levelname for record in records] == ["WARNING"]
    assert records[0].name == "mulligan"
    assert "gave up after 4 attempts" in records[0].getMessage()


def test_a_guard_that_nobody_hears_warns_once(records):
    with virtual_time():
        one, other = (mulligan.Guard(n, policy=STEADY, breaker=False) for n in ("one", "other"))
        for guard in (one, one, other, one, other):
            with pytest.raises(Exception, match="status 500"):
                guard.call(Scripted(status_error(500)))
    assert [record.mulligan["target"] for record in records] == ["one", "other"]


def test_a_guard_with_a_listener_does_not_warn_behind_its_back(records):
    run(status_error(500), listeners=[lambda _: None])
    assert records == []


@pytest.mark.parametrize("outcome", [status_error(401), KeyError("typo")], ids=repr)
def test_what_is_no_exhaustion_is_no_warning(records, outcome):
    run(outcome)
    assert records == []


# Listeners that fail


def broken(event):
    raise RuntimeError("listener broke")


def test_a_listener_that_raises_never_replaces_the_error(drive, caplog):
    error = status_error(500)
    heard: list[object] = []
    with pytest.raises(Exception, match="status 500") as caught:
        drive([error], STEADY, listeners=[broken, heard.append])
    assert caught.value is error
    assert len(heard) == 5
    assert "listener broke" in caplog.text


def test_a_listener_that_raises_never_spoils_a_success(drive, caplog):
    assert drive([status_error(500), "ok"], STEADY, listeners=[broken])[0] == "ok"
    assert "listener broke" in caplog.text


def test_a_listener_that_raises_at_a_success_does_not_spoil_it(drive, caplog):
    class Curious:
        successes = True

        def __call__(self, event):
            raise RuntimeError("listener broke")

    assert drive(["ok"], STEADY, listeners=[Curious()]) == ("ok", [])
    assert "listener broke" in caplog.text


def test_an_interrupt_in_a_listener_is_an_interrupt(drive):
    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- trio may wrap it in a group
        drive([status_error(500)], STEADY, listeners=[interrupt])
    raised = caught.value
    leaves = raised.exceptions if isinstance(raised, BaseExceptionGroup) else (raised,)
    assert [type(each) for each in leaves] == [KeyboardInterrupt]

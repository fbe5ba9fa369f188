"""What the simulated server answers: its words are ones that the classifier reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Kind, classifier
from mulligan.classify.quotas import quotas
from mulligan.sim.engine import StatusError
from mulligan.sim.randomness import SeededRandom
from mulligan.sim.scenario import FaultPeriod, Hints, Jobs, Scenario, ServerLimit, ServerQueue
from mulligan.sim.server import Server, SimulatedJob, served_at

WALL = 1_767_225_600.0


def server(*limits, seed=0, **rest):
    rest.setdefault("jobs", Jobs(count=10))
    return Server(Scenario(limits=limits, **rest), SeededRandom(seed), WALL)


def asked(number=0, attempt=0, **job):
    return SimulatedJob(number, **job), attempt


def read(reply, now=0.0):
    error = StatusError(reply.status, reply.headers, reply.body)
    return classifier.classify(error, now=WALL + now)


WINDOW = ServerLimit(kind="window", quota=2, per=60, first=40)


def test_a_rejection_says_nothing_about_when_unless_it_has_a_hint():
    bare = server(WINDOW)
    for _ in range(2):
        assert bare.arrive(10, *asked()).ending == "answered"
    reply = bare.arrive(10, *asked())
    assert (reply.status, reply.headers, reply.closed_for) == (429, {}, None)
    assert read(reply).kind is Kind.RATE_LIMIT
    assert read(reply).hint is None


@pytest.mark.parametrize(
    ("retry_after", "low", "high", "is_binding"),
    [
        ("exact", 30, 30, True),
        ("short", 3, 3, False),
        ("huge", 3600, 3600, False),
        ("drifting", 9, 90, False),
    ],
)
def test_a_hint_is_true_or_a_lie_as_the_scenario_says(retry_after, low, high, is_binding):
    hinting = server(WINDOW, hints=Hints(retry_after=retry_after))
    for _ in range(2):
        hinting.arrive(10, *asked())
    reply = hinting.arrive(10, *asked())
    assert low <= int(reply.headers["retry-after"]) <= high
    assert (reply.closed_for is not None) == is_binding
    hint = read(reply, 10).hint
    assert hint is not None
    assert hint.delay == float(reply.headers["retry-after"])


@pytest.mark.parametrize("style", ["x-ratelimit", "anthropic", "ratelimit"])
def test_quota_headers_are_read_back_as_they_were_meant(style):
    stating = server(WINDOW, hints=Hints(headers=style))
    reply = stating.arrive(10, *asked())
    (quota,) = quotas(reply.headers, now=WALL + 10)
    assert (quota.limit, quota.remaining) == (2, 1)
    assert quota.reset_in == pytest.approx(30, abs=1)


def test_requests_and_tokens_are_stated_apart_and_a_request_needs_both():
    limits = (
        ServerLimit(kind="bucket", quota=100, per=60),
        ServerLimit(kind="bucket", quota=1500, per=60, unit="tokens"),
    )
    stating = server(*limits, hints=Hints(headers="anthropic"))
    assert stating.arrive(0, *asked(tokens=1000)).ending == "answered"
    reply = stating.arrive(0, *asked(tokens=1000))
    assert reply.status == 429
    left = {quota.dimension: quota.remaining for quota in quotas(reply.headers, now=WALL)}
    assert left == {"requests": 99, "tokens": 500}  # a rejection took nothing of either


def test_a_limit_of_one_model_leaves_the_others_alone():
    hot = server(ServerLimit(kind="bucket", quota=1, per=60, model="hot"))
    assert hot.arrive(0, *asked(model="hot")).ending == "answered"
    assert hot.arrive(0, *asked(model="hot")).ending == "status"
    assert hot.arrive(0, *asked(model="cold")).ending == "answered"


def test_an_outage_ends_when_it_ends_and_may_say_so():
    down = server(faults=(FaultPeriod(start=5, end=20, status=503, retry_after=True),))
    assert down.arrive(4.9, *asked()).ending == "answered"
    reply = down.arrive(5, *asked())
    assert (reply.status, reply.headers["retry-after"], reply.closed_for) == (503, "15", 15)
    assert down.arrive(20, *asked()).ending == "answered"
    assert server(faults=(FaultPeriod(end=9, status=0),)).arrive(1, *asked()).ending == "refused"


@given(seed=st.integers(0, 2**32), share=st.floats(0.1, 0.9))
def test_a_brown_out_fails_its_share(seed, share):
    brown = server(faults=(FaultPeriod(share=share),), seed=seed)
    failed = sum(brown.arrive(0, *asked(n)).ending == "status" for n in range(2000))
    assert failed / 2000 == pytest.approx(share, abs=0.07)


def test_luck_belongs_to_a_request_not_to_its_place_in_time():
    first, second = (server(faults=(FaultPeriod(share=0.5),), seed=1) for _ in range(2))
    forward = [first.arrive(0, *asked(n)).status for n in range(50)]
    backward = [second.arrive(0, *asked(n)).status for n in reversed(range(50))]
    assert forward == backward[::-1]


def test_a_queue_serves_in_order_and_works_for_clients_that_are_gone():
    queue = ServerQueue(rate=2, slow_rate=1, slow_from=100, slow_until=200)
    busy = server(jobs=Jobs(count=10, timeout=1), queue=queue)
    replies = [busy.arrive(0, *asked(n)) for n in range(4)]
    assert [each.ending for each in replies] == ["answered", "answered", "timeout", "timeout"]
    assert [each.takes for each in replies] == [0.5, 1.0, 1, 1]
    assert all(each.is_applied for each in replies)
    assert busy.arrive(2, *asked()).takes == pytest.approx(0.5)  # the queue is empty again


def test_a_queue_that_is_slow_for_a_while_serves_less_then():
    queue = ServerQueue(rate=10, slow_rate=1, slow_from=1, slow_until=3)
    assert served_at(queue, 0, 10) == pytest.approx(1)
    assert served_at(queue, 0, 12) == pytest.approx(3)
    assert served_at(queue, 0, 13) == pytest.approx(3.1)


def test_lost_and_cut_replies_are_billed_for_what_was_done():
    losing = server(jobs=Jobs(count=1, lost=1, committed=1))
    assert (losing.arrive(0, *asked()).ending, losing.arrive(0, *asked()).is_applied) == (
        "lost",
        True,
    )
    cutting = server(jobs=Jobs(count=1, cut=1, cut_at=0.25)).arrive(0, *asked(tokens=1000))
    assert (cutting.ending, cutting.tokens, cutting.is_applied) == ("cut", 250, False)

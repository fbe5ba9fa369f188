"""The memory of one call: what it counts is what happened."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mulligan import Effects, Ending, Failure, Fixed, GiveUp, Hint, Kind, Policy, Reach, RetryAfter
from mulligan import Rule as Answer
from mulligan.core.decide import Call

ANSWER = Answer(attempts=4, backoff=Fixed(wait=2))
POLICY = Policy(
    rules=dict.fromkeys((Kind.SERVER, Kind.NETWORK, Kind.RATE_LIMIT, Kind.TIMEOUT), ANSWER),
    budget=1000,
)


class Calls(RuleBasedStateMachine):
    """A call beside a ledger that writes down the same events in the dullest way."""

    @initialize(start=st.floats(0, 1e6))
    def begin(self, start):
        self.call = Call(POLICY, Effects.READ, name="fetch", target="acme")
        self.now = self.first = start
        self.failures: list[Failure] = []
        self.decisions: list[object] = []
        self.took: list[float | None] = []
        self.waited: list[float] = []

    @rule(
        kind=st.sampled_from([Kind.SERVER, Kind.NETWORK, Kind.RATE_LIMIT, Kind.TIMEOUT]),
        hint=st.none() | st.floats(0.1, 60),
        took=st.none() | st.floats(0, 30),
    )
    def fail(self, kind, hint, took):
        self.now += took or 0
        if not self.failures:
            self.first = self.now
        failure = Failure(kind=kind, hint=hint and Hint(delay=hint))
        decision = self.call.failed(failure, now=self.now, wall=0, roll=0.5, took=took)
        self.failures.append(failure)
        self.decisions.append(decision)
        self.took.append(took)
        if isinstance(decision, RetryAfter):
            self.call.waited += decision.delay
            self.call.spent += decision.delay
            self.waited.append(decision.delay)
            self.now += decision.delay
        self.call.attempt += 1

    @invariant()
    def counts_failures_by_kind(self):
        for kind in Kind:
            counted = self.call.counts.get(kind, 0)
            assert counted == sum(1 for each in self.failures if each.kind is kind)
        assert self.call.timeouts == self.call.counts.get(Kind.TIMEOUT, 0)

    @invariant()
    def counts_failures_since_the_last_hint(self):  # E-A8, E-A17
        for kind in Kind:
            own = [each for each in self.failures if each.kind is kind]
            since = 0
            for each in own:
                since = since + 1 if each.hint is None else 0
            assert self.call.unhinted.get(kind, 0) == since

    @invariant()
    def knows_the_fastest_attempt_that_was_measured(self):
        assert self.call.fastest == min((t for t in self.took if t is not None), default=inf)

    @invariant()
    def spends_waits_and_attempts_after_the_first(self):  # R-B18
        later = sum(took or 0 for took in self.took[1:])
        assert self.call.waited == pytest.approx(sum(self.waited))
        assert self.call.spent == pytest.approx(sum(self.waited) + later)

    @invariant()
    def remembers_when_it_first_failed(self):
        assert self.call.first_failed_at == (self.first if self.failures else None)

    @invariant()
    def counts_limits_that_named_no_time(self):  # R-C18
        silent = sum(1 for each in self.failures if each.kind.is_limit and each.hint is None)
        assert self.call.silent_limits == silent
        said = f"acme sent {silent} limits without a time" if silent > 1 else ""
        assert self.call.remark == said

    @invariant()
    def tells_everything_in_order(self):
        story = self.call.story(Ending.EXHAUSTED, "enough", retry_at=None, delivered=0)
        assert [each.kind for each in story.tries] == [str(f.kind) for f in self.failures]
        assert [each.decision for each in story.tries] == [type(d).__name__ for d in self.decisions]
        assert [each.took for each in story.tries] == self.took
        assert [each.delay for each in story.tries if each.delay is not None] == self.waited
        assert [each.attempt for each in story.tries] == list(range(1, len(self.failures) + 1))


TestCalls = Calls.TestCase


@given(st.lists(st.sampled_from([Kind.SERVER, Kind.NETWORK]), max_size=12))
def test_each_kind_has_attempts_of_its_own(kinds):  # E-C11
    call = Call(POLICY, Effects.READ)
    left = dict.fromkeys(kinds, 4)
    for kind in kinds:
        left[kind] -= 1
        decision = call.failed(Failure(kind=kind), now=0, wall=0, roll=0.5)
        assert isinstance(decision, RetryAfter) == (left[kind] > 0)


def test_what_was_not_applied_is_judged_again_as_never_sent():  # R-I2
    call = Call(POLICY, Effects.UNSAFE, can_verify=True)
    lost = Failure(kind=Kind.NETWORK, reach=Reach.MAYBE_APPLIED)
    assert type(call.failed(lost, now=0, wall=0, roll=0.5, took=3)).__name__ == "Verify"
    again = call.not_applied(lost, now=0, wall=0, roll=0.5)
    assert again == RetryAfter(2)
    assert call.counts == {Kind.NETWORK: 1}
    assert [(f.reach, d, t) for f, d, t in call.tries] == [(Reach.NEVER_SENT, again, 3)]


def test_what_the_world_forces_replaces_what_was_decided():
    call = Call(POLICY, Effects.READ)
    call.failed(Failure(kind=Kind.SERVER), now=0, wall=0, roll=0.5)
    forced = GiveUp(Ending.REFUSED, "the breaker opened")
    call.overruled(forced)
    assert [decision for _, decision, _ in call.tries] == [forced]


def test_a_story_tells_what_it_was_given_in_strings_and_numbers():
    call = Call(POLICY, Effects.READ, name="fetch", target="acme")
    failure = Failure(kind=Kind.SERVER, status=500, code="boom", message="it broke")
    decision = call.failed(failure, now=0, wall=0, roll=0.5, took=1.5)
    story = call.story(Ending.DEADLINE, "too late", retry_at=7.0, delivered=3)
    assert (story.target, story.name, story.ending) == ("acme", "fetch", "deadline")
    assert (story.because, story.attempts, story.retry_at) == ("too late", 1, 7)
    assert story.delivered == 3
    (only,) = story.tries
    assert (only.status, only.code, only.message) == (500, "boom", "it broke")
    assert (only.because, only.took) == (decision.because, 1.5)
    assert str(story) == (
        "mulligan: out of time after 1 attempt: too late\n"
        "  attempt 1: 500 (server): it broke → retry in 2s, by backoff"
    )


def test_calls_do_not_share_their_counters():
    one, other = Call(POLICY, Effects.READ), Call(POLICY, Effects.READ)
    one.failed(Failure(kind=Kind.SERVER), now=0, wall=0, roll=0.5)
    assert other.counts == {}
    assert other.tries == []

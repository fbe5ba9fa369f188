from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import SettingError
from mulligan.classify.quotas import Quota, Unit
from mulligan.core.moment import Moment
from mulligan.shared.gate.gate import (
    GATE,
    EnterGate,
    ForgetGate,
    Gate,
    GateState,
    GateWait,
    LeaveGate,
    PermitGranted,
)
from mulligan.shared.gate.state import advanced

PLAIN = Gate()


class World:
    """A gate, and a clock that moves when told."""

    def __init__(self, settings: Gate = PLAIN) -> None:
        self.settings, self.state, self.now, self.wall = settings, GateState(), 0.0, 1e9
        self.era, self.asked = "", 0

    @property
    def moment(self) -> Moment:
        return Moment(self.now, self.wall + self.now, self.era)

    def enter(self, name=None, **changes):
        self.asked += 1
        operation = EnterGate(
            id=name or f"p{self.asked}",
            holder=changes.pop("holder", "h"),
            settings=self.settings,
            **changes,
        )
        self.state, answer = operation(self.state, self.moment)
        return answer

    def leave(self, name="", reply="answered", turn=None, **said):
        operation = LeaveGate(
            id=name,
            turn=self.state.turn if turn is None else turn,
            reply=reply,
            settings=self.settings,
            **said,
        )
        self.state, shut = operation(self.state, self.moment)
        return shut

    def state_that(self, remaining, reset_in=60.0, limit=100.0, turn=None, **more):
        said = Quota(
            dimension="requests", limit=limit, remaining=remaining, reset_in=reset_in, **more
        )
        self.leave(stated=(said,), turn=turn)

    def burst(self, most=500):
        """Calls that pass now, one at a time."""
        count = 0
        while count < most and isinstance(self.enter(), PermitGranted):
            count += 1
        return count


def test_without_belief_everything_passes():
    world = World()
    assert not world.state.is_counting
    assert world.burst(500) == 500


def test_it_admits_what_remains_then_waits_for_the_reset():
    world = World()
    world.state_that(7)
    assert world.burst() == 7
    assert world.enter() == GateWait(60.0, "0 of 100 requests left until the reset", least=60.0)
    world.now = 61.0
    assert world.burst() == 100


def test_statements_correct_downwards_at_once_and_upwards_only_at_a_reset():
    world = World()
    world.state_that(50)
    world.state_that(10, reset_in=59)
    world.state_that(40, reset_in=58)
    assert world.burst() == 10


def test_an_answer_from_before_the_reset_does_not_empty_the_new_window():
    world = World()
    world.state_that(1)
    before = world.state.turn
    world.burst()
    world.now = 60.5
    assert isinstance(world.enter(), PermitGranted)
    world.state_that(0, reset_in=None, turn=before)
    assert world.burst() == 99


def test_a_rejection_shuts_it_for_everybody_until_the_hint():
    world = World()
    assert world.leave(reply="rejected", hint=20.0) is True
    for holder in ("a", "b"):
        assert world.enter(holder=holder) == GateWait(
            20.0, "a rejection asked to wait 20s", least=20.0
        )


def test_rejections_of_one_burst_shut_it_once_and_the_longest_hint_holds():
    world = World()
    assert world.leave(reply="rejected", hint=20.0, turn=0) is True
    assert world.leave(reply="rejected", hint=25.0, turn=0) is False
    assert world.leave(reply="rejected", hint=5.0, turn=0) is False
    assert world.state.turn == 1
    assert world.enter().delay == 25.0
    world.now = 26.0
    assert isinstance(world.enter(), PermitGranted)
    assert world.leave(reply="rejected", hint=9.0, turn=0) is False


def test_it_opens_with_one_probe_then_slowly():
    world = World()
    world.leave(reply="rejected", hint=20.0)
    world.now = 20.0
    assert isinstance(world.enter("probe"), PermitGranted)
    assert isinstance(world.enter(), GateWait)
    world.leave("probe")
    assert isinstance(world.enter("second"), PermitGranted)
    assert isinstance(world.enter("third"), PermitGranted)
    assert isinstance(world.enter(), GateWait)


def test_a_hung_probe_loses_its_lease():
    world = World(Gate(lease=10))
    world.leave(reply="rejected", hint=20.0)
    world.now = 20.0
    world.enter("hung")
    world.now = 30.5
    assert isinstance(world.enter("next"), PermitGranted)


def test_what_passed_before_a_rejection_passes_in_every_span_after_it():
    world = World()
    world.leave(reply="rejected", hint=60.0)
    world.now = 60.0
    for n in range(10):
        assert isinstance(world.enter(f"n{n}"), PermitGranted)
        world.leave(f"n{n}")
    world.leave("n9", reply="rejected", hint=60.0)
    for _ in range(3):
        world.now += 60.001
        passed = 0
        while isinstance(world.enter(f"{world.now}/{passed}"), PermitGranted):
            world.leave(f"{world.now}/{passed}")
            passed += 1
        assert passed == 10


def test_a_rejection_without_a_time_waits_a_seventh_of_the_time_it_has_been_shut():
    world, waits = World(), []
    while world.now < 1000:
        assert isinstance(world.enter("p"), PermitGranted)
        began = world.now
        world.leave("p", reply="rejected", roll=1.0)
        waits.append(world.enter().delay)
        assert waits[-1] == pytest.approx(min(max(began / 7, 1.0), 60.0), rel=0.02)
        world.now += waits[-1]
    assert len(waits) < 50
    assert isinstance(world.enter("p"), PermitGranted)
    world.leave("p")  # something has passed: the next rejection begins a new closing
    assert isinstance(world.enter("p"), PermitGranted)
    world.leave("p", reply="rejected", roll=1.0)
    assert world.enter().delay == pytest.approx(1.0, rel=0.1)


def test_a_span_is_counted_from_when_the_gate_opened_not_from_who_came_late():
    world = World()
    world.leave(reply="rejected", hint=10.0)
    world.now = 10.7  # a window of 60 s began at 10; the first call comes a little late
    assert isinstance(world.enter("first"), PermitGranted)
    world.now = 11.0
    world.leave("first")
    assert isinstance(world.enter("second"), PermitGranted)
    world.leave("second", reply="rejected", hint=59.0)
    assert world.state.opening is not None
    assert world.state.opening.span == 60.0


def test_an_absurd_hint_is_believed_no_longer_than_the_horizon():
    world = World(Gate(horizon=3600))
    world.leave(reply="rejected", hint=1e12)
    assert world.enter().delay == 3600


def test_a_shut_gate_survives_a_reboot_and_a_stepped_calendar():
    world = World()
    world.leave(reply="rejected", hint=600.0)
    world.wall -= 86_400
    assert world.enter().delay == 600.0
    world.wall += 86_400 + 100
    world.era = "next boot"
    assert world.enter().delay == 500.0


def test_below_five_remaining_it_waits_where_five_are_kept():  # R-L7
    world = World(Gate(keep=5))
    world.state_that(8)
    assert world.burst() == 4
    assert world.enter() == GateWait(60.0, "4 of 100 requests left until the reset", least=60.0)


def test_below_ten_remaining_calls_are_spaced_out_until_above_twenty():  # R-L8
    world = World(Gate(low=10, high=20))
    world.state_that(11, reset_in=600.0, limit=60.0)
    assert world.burst() == 2
    assert world.enter().delay == pytest.approx(1.1)
    world.now += 1.1
    assert world.burst() == 1
    world.now = 601.0
    assert world.burst() == 51  # refilled: burst until less than ten remain


def test_tokens_are_estimated_reserved_and_settled():
    world = World()
    said = Quota(dimension="tokens", unit=Unit.TOKENS, limit=1000, remaining=1000, reset_in=60)
    world.leave(stated=(said,))
    assert isinstance(world.enter("a", tokens=600), PermitGranted)
    assert world.enter("b", tokens=600) == GateWait(
        60.0, "400 of 1000 tokens left until the reset", least=60.0
    )
    world.leave("a", spent=-350)
    assert isinstance(world.enter("b", tokens=600), PermitGranted)


def test_every_dimension_must_let_it_through():
    world = World()
    world.leave(
        stated=(
            Quota(dimension="requests", limit=50, remaining=40, reset_in=60),
            Quota(dimension="unified-5h", unit=Unit.SHARE, limit=1, remaining=0, reset_in=9000),
        )
    )
    assert world.enter().delay == 9000


def test_beliefs_expire():
    world = World()
    world.state_that(0, reset_in=None, limit=None)
    assert world.enter() == GateWait(1.0, "0 requests left until the reset", least=1.0)
    world.now = 1.0
    assert isinstance(world.enter(), PermitGranted)
    assert not world.state.beliefs
    # Nobody has said that anything is left again: one call goes ahead.
    wait = world.enter()
    assert (wait.because, wait.wakes_early) == ("one call goes ahead", True)


def test_waiters_are_released_with_a_spread():  # E-A18
    world = World()
    world.leave(reply="rejected", hint=20.0)
    delays = [world.enter(roll=n / 100).delay for n in range(100)]
    assert delays[0] == 20.0
    assert delays == sorted(set(delays))
    assert delays[-1] <= 21.0


def test_the_first_call_goes_ahead_alone_where_answers_are_read():
    world = World(Gate(scout=True))
    assert isinstance(world.enter("scout"), PermitGranted)
    assert isinstance(world.enter(), GateWait)
    world.leave("scout")
    assert world.burst(100) == 100
    assert not world.state.is_counting


def test_a_scout_that_takes_long_holds_nobody_for_more_than_a_second():
    world = World(Gate(scout=True))
    world.enter("slow scout")
    world.now = 1.1
    assert isinstance(world.enter(), PermitGranted)


def test_under_the_low_water_permits_come_in_blocks_and_unused_ones_go_back():
    world = World()
    world.state_that(80, reset_in=5.0)
    assert world.enter("block", most=100) == PermitGranted(0, 20, 5.0)
    assert world.enter("other", most=100, holder="i") == PermitGranted(0, 7, 5.0)
    world.leave("block", unused=15)
    assert world.state.beliefs[0].remaining == 80 - 5 - 7


# Buckets: the reset moves with every call


def bucket(world, level, rate=1.0, limit=20.0):
    """An answer of a bucket that is `level` full."""
    world.state_that(float(int(level)), reset_in=(limit - level) / rate, limit=limit)


def known_bucket():
    """A gate that has seen a bucket of 20, one a second, run empty at once."""
    world = World()
    bucket(world, 19)
    for level in range(18, -1, -1):
        assert isinstance(world.enter(f"first {level}"), PermitGranted)
    for level in range(18, -1, -1):
        said = Quota(dimension="requests", limit=20, remaining=level, reset_in=20.0 - level)
        world.leave(f"first {level}", stated=(said,))
    assert world.burst() == 0
    assert world.state.beliefs[0].rate == pytest.approx(1.0, rel=0.02)
    return world


def test_a_bucket_gives_back_all_the_time():
    world = known_bucket()
    world.now += 3.1
    assert world.burst() == 3


@pytest.mark.parametrize("out", [0, 2])
def test_the_newest_answer_of_a_bucket_can_tell_that_more_is_left(out):
    world = known_bucket()
    world.now = 5.1
    for number in range(5):
        assert isinstance(world.enter(f"n{number}"), PermitGranted)
    for number in range(5 - out):
        world.leave(f"n{number}", reply="cancelled")  # never sent, and nobody can know
    bucket(world, 4.1)
    assert world.burst() == 4 - out


def test_an_old_answer_of_a_bucket_tells_nothing():
    world = known_bucket()
    world.now = 1.5
    bucket(world, 9.5)  # full sooner than we have heard: calls came after it
    assert world.burst() == 1


def test_a_fixed_window_is_never_taken_for_a_bucket():
    world = World()
    for used in range(1, 101):
        world.now += 0.01
        world.state_that(100.0 - used, reset_in=60.0 - world.now)
    assert world.state.beliefs[0].rate == 0
    assert world.enter().delay == pytest.approx(59.0, abs=0.1)


# Hints alone


def opened(world, hint, **said):
    world.leave(reply="rejected", hint=hint, **said)
    world.now += hint


def test_what_passed_in_the_burst_lets_slow_start_hurry():
    slow, quick = World(), World()
    opened(slow, 20.0)
    opened(quick, 20.0, passed=60)
    passed = {}
    for name, world in (("slow", slow), ("quick", quick)):
        count = 0
        for _ in range(4):  # round trips
            went = []
            while isinstance(world.enter(f"{name}{count}"), PermitGranted):
                went.append(f"{name}{count}")
                count += 1
            for each in went:
                world.leave(each)
            world.now += 0.2
        passed[name] = count
    assert passed["quick"] >= 60 > passed["slow"]


def test_what_is_answered_after_the_rejection_had_passed_too():
    world = World()
    opened(world, 20.0)
    assert isinstance(world.enter("a"), PermitGranted)
    world.leave("a")
    turn = world.state.turn
    assert isinstance(world.enter("b"), PermitGranted)
    assert isinstance(world.enter("c"), PermitGranted)
    world.leave("b", reply="rejected", hint=20.0, turn=turn)
    assert world.state.opening is not None
    assert world.state.opening.cap == 1
    world.leave("c", turn=turn)
    assert world.state.opening.cap == 2


def test_a_gate_that_many_wait_at_is_not_thrown_open_because_it_was_quiet():
    world = World()
    opened(world, 6.0)
    world.enter("a")
    world.leave("a")
    world.enter("b")
    world.leave("b", reply="rejected", hint=6.0)
    for _ in range(40):
        world.now += 6.01
        assert world.burst() <= 8


def test_a_shut_that_grew_longer_is_still_opened_slowly():
    world = World()
    world.leave(reply="rejected", hint=5.0, turn=0)
    world.leave(reply="rejected", hint=500.0, turn=0)
    world.now += 500.1
    assert world.burst() == 1


def test_after_a_rejection_it_is_never_quicker_than_before():
    world = World()
    opened(world, 10.0)
    world.enter("a")
    world.leave("a")
    world.enter("b")
    world.leave("b", reply="rejected", hint=10.0)
    before = world.state.opening
    world.now += 10.001
    world.enter("c")
    world.leave("c", reply="rejected", hint=0.001)
    after = world.state.opening
    assert before is not None
    assert after is not None
    assert (after.cap or 0) / after.span <= (before.cap or 0) / before.span


def test_calls_made_unasked_are_remembered_over_a_reset():
    world = World()
    world.state_that(10, reset_in=5.0, limit=10.0)
    assert world.enter("a", unasked=6) == PermitGranted(0, 1, 5.0)
    world.now = 5.1
    assert world.burst() == 3  # seven may still be on their way


def test_permits_that_were_merged_go_back_whole():
    world = World()
    world.state_that(400, reset_in=5.0, limit=400.0)
    for number in range(60):
        assert isinstance(world.enter(f"n{number}", most=4, holder=f"h{number % 3}"), PermitGranted)
    sizes = {permit.id: permit.count for permit in world.state.permits}
    for number in range(60):
        world.leave(f"n{number}", count=sizes.get(f"n{number}", 4))
    assert sum(permit.count for permit in world.state.permits) == 0


def test_what_a_person_makes_it_forget_is_forgotten():
    world = World()
    world.leave(reply="rejected", hint=600.0)
    world.state, was_something = ForgetGate()(world.state, world.moment)
    assert was_something
    assert world.burst(50) == 50
    assert world.leave(reply="rejected", hint=9.0, turn=0) is False  # from before


@given(
    remaining=st.integers(0, 200),
    holders=st.integers(1, 5),
    most=st.integers(1, 50),
    order=st.lists(st.integers(0, 4), max_size=300),
)
def test_no_more_is_handed_out_than_remains(remaining, holders, most, order):
    world = World()
    world.state_that(remaining, reset_in=1000.0)
    handed = 0
    for who in order:
        answer = world.enter(holder=f"h{who % holders}", most=most)
        handed += answer.count if isinstance(answer, PermitGranted) else 0
    assert handed <= remaining
    assert GATE.unpack(GATE.pack(world.state)) == world.state


said = st.builds(
    Quota,
    dimension=st.sampled_from(["requests", "tokens", "odd"]),
    unit=st.sampled_from(["requests", "tokens", "share"]),
    limit=st.none() | st.floats(0, 1e6),
    remaining=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    reset_in=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    window=st.none() | st.floats(0, 1e6),
)


@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(["enter", "answered", "rejected", "cancelled"]),
            st.sampled_from("abcdef"),
            st.lists(said, max_size=2),
            st.floats(0, 1e7),
            st.floats(0, 100),
        ),
        max_size=30,
    ),
    scout=st.booleans(),
)
def test_whatever_a_server_says_the_gate_opens_again(moves, scout):
    world = World(Gate(scout=scout, low=10, high=20, keep=5))
    for what, name, stated, hint, passes in moves:
        world.now += passes
        if what == "enter":
            answer = world.enter(name, tokens=10, roll=0.5)
            if isinstance(answer, GateWait):
                assert 0 < answer.delay < float("inf")
        else:
            world.leave(name, reply=what, stated=tuple(stated), hint=hint)
        assert GATE.unpack(GATE.pack(world.state)) == world.state
    for _ in range(2000):
        answer = world.enter()
        if isinstance(answer, PermitGranted):
            return
        world.now += answer.delay
    pytest.fail(f"still shut: {world.state}")


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(SettingError, match=r"^Gate needs low <= high; got low=30, high=20$"):
        Gate(low=30, high=20)


def test_a_reset_a_month_away_is_believed_for_the_horizon_then_one_call_looks():
    world = World()
    world.state_that(0, reset_in=31 * 86_400)
    waits = world.enter()
    assert isinstance(waits, GateWait)
    assert waits.least == world.settings.horizon
    world.now += world.settings.horizon - 1
    assert isinstance(world.enter(), GateWait)
    world.now += 2
    assert world.burst() == 1
    world.state_that(0, reset_in=31 * 86_400 - world.now)
    assert isinstance(world.enter(), GateWait)
    world.now += world.settings.horizon - 1
    assert isinstance(world.enter(), GateWait)


@pytest.mark.parametrize(("left", "scouts"), [(24_999, False), (10, True)])
def test_a_reset_of_a_limit_of_which_most_is_left_needs_no_call_that_goes_ahead(left, scouts):
    """A full bucket of 25,000 states a reset in 2 ms: one call at a time went through it."""
    stated = Quota(
        dimension="requests", unit=Unit.REQUESTS, limit=25_000, remaining=24_999, reset_in=0.002
    )
    told = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(stated,))
    state, _ = told(GateState(), Moment(100.0, 1e9))
    state = advanced(state, Moment(100.01, 1e9 + 0.01))  # the stated reset; the next one is guessed
    state = replace(state, beliefs=(replace(state.beliefs[0], remaining=float(left)),))
    assert advanced(state, Moment(100.02, 1e9 + 0.02)).is_scouting is scouts

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Failure, Kind, Reach, SettingError
from mulligan.core.moment import Moment
from mulligan.shared.admission import result_of
from mulligan.shared.breaker import (
    BREAKER,
    AskBreaker,
    Breaker,
    Circuit,
    ManualOverride,
    OpenBreaker,
    Passed,
    Shut,
    TellBreaker,
)

FIVE = Breaker(failures=5, open_at_least=60)


class World:
    """A breaker, and a clock that moves when told."""

    def __init__(self, settings: Breaker = FIVE) -> None:
        self.settings, self.state, self.now, self.wall = settings, Circuit(), 0.0, 1e9
        self.era = ""

    def do(self, operation):
        moment = Moment(self.now, self.wall + self.now, self.era)
        self.state, result = operation(self.state, moment)
        return result

    def ask(self, permit="p"):
        return self.do(AskBreaker(permit=permit, settings=self.settings))

    def tell(self, result, permit="p", generation=None, worker="w", stated=0.0, **more):
        if generation is None:
            generation = self.state.generation
        return self.do(
            TellBreaker(
                permit=permit,
                generation=generation,
                result=result,
                worker=worker,
                settings=self.settings,
                stated=stated,
                **more,
            )
        )

    def opened(self):
        for _ in range(self.settings.failures or 0):
            self.tell("failure")
        return self

    def call(self, result, permit="p"):
        answer = self.ask(permit)
        if isinstance(answer, Passed):
            self.tell(result, permit, answer.generation)
        return answer


def test_it_opens_at_the_fifth_failure_in_a_row_and_not_before():  # R-K1, E-B8
    world = World()
    changes = [world.tell("failure") for _ in range(5)]
    assert changes == [False, False, False, False, True]
    assert world.ask() == Shut(60.0, "5 failures in a row")


def test_a_success_ends_the_row():
    world = World()
    for _ in range(20):
        for result in ("failure",) * 4 + ("success",):
            world.tell(result)
    assert world.state == Circuit()


def test_the_remaining_time_is_told():  # R-K2, R-K6
    world = World().opened()
    world.now = 18.0
    assert world.ask() == Shut(42.0, "5 failures in a row")


def test_one_probe_passes_and_its_success_closes():  # R-K3, R-K4
    world = World().opened()
    world.now = 60.0
    assert world.ask("first") == Passed(1, is_probe=True)
    because = "5 failures in a row; a probe is under way"
    assert world.ask("second") == Shut(30.0, because, is_probing=True)
    assert world.tell("success", "first") is True
    assert world.ask("third") == Passed(2)


def test_two_successes_to_close_where_two_are_asked_for():  # R-K4, pattern
    world = World(Breaker(failures=5, successes=2)).opened()
    world.now = 60.0
    assert world.call("success", "first") == Passed(1, is_probe=True)
    assert world.call("success", "second") == Passed(1, is_probe=True)
    assert world.ask() == Passed(2)


def test_a_failed_probe_opens_again():  # R-K5
    world = World().opened()
    world.now = 60.0
    world.call("failure")
    assert world.ask() == Shut(60.0, "the probe failed")


@pytest.mark.parametrize("probes", [1, 3])
@given(order=st.permutations(range(50)))
def test_exactly_as_many_probes_pass_as_may(probes, order):  # E-B1
    world = World(Breaker(failures=5, probes=probes)).opened()
    world.now = 60.0
    answers = [world.ask(f"caller {n}") for n in order]
    assert sum(isinstance(answer, Passed) for answer in answers) == probes


def test_a_permit_comes_back_on_cancellation():  # E-B2, E-B5
    world = World().opened()
    world.now = 60.0
    assert world.call("neither", "first") == Passed(1, is_probe=True)
    assert world.ask("second") == Passed(1, is_probe=True)


def test_a_client_error_of_its_probe_closes_it_since_the_target_answers():
    world = World(Breaker(failures=5, successes=2)).opened()
    world.now = 60.0
    assert world.call("alive", "first") == Passed(1, is_probe=True)
    assert world.call("alive", "second") == Passed(1, is_probe=True)
    assert world.ask() == Passed(2)


def test_a_client_error_ends_no_row_of_failures():  # R-C9: it never counts, either way
    world = World()
    for _ in range(4):
        world.tell("failure")
        world.tell("alive")
    assert world.tell("failure") is True


def test_a_hung_probe_loses_its_lease():  # E-B3
    world = World(Breaker(failures=5, lease=10)).opened()
    world.now = 60.0
    world.ask("hung")
    world.now = 70.0
    assert world.ask("next") == Passed(1, is_probe=True)
    assert world.tell("failure", "hung") is False
    because = "5 failures in a row; a probe is under way"
    assert world.ask("third") == Shut(10.0, because, is_probing=True)


def test_a_probe_that_was_only_slow_closes_it():
    world = World(Breaker(failures=5, lease=10)).opened()
    world.now = 60.0
    world.ask("slow")
    world.now = 95.0
    world.ask("next")
    assert world.tell("success", "slow") is True
    assert world.ask("third") == Passed(2)


@pytest.mark.parametrize("result", ["success", "failure"])
def test_a_result_from_before_the_break_changes_nothing(result):  # E-B4, E-B6
    world = World().opened()
    before = world.state
    world.now = 61.0
    assert world.tell(result, "old", generation=0) is False
    assert world.state == before


def test_asking_twice_is_asking_once():
    world = World().opened()
    world.now = 60.0
    assert world.ask("same") == world.ask("same") == Passed(1, is_probe=True)


def test_a_calendar_set_back_does_not_hold_it_open():  # E-B7
    world = World().opened()
    world.wall -= 3600
    world.now = 60.0
    assert world.ask() == Passed(1, is_probe=True)


def test_after_a_reboot_it_is_half_open():  # E-B14
    world = World().opened()
    world.now, world.era = 1.0, "another boot"
    assert world.ask() == Passed(1, is_probe=True)


def test_a_hand_is_stronger_than_results_and_timers():  # E-B9
    world = World()
    world.do(ManualOverride(move="block", because="migration"))
    world.now = 1e6
    world.tell("success")
    assert world.ask() == Shut(float("inf"), "migration")
    world.do(ManualOverride(move="allow"))
    world.opened()
    assert isinstance(world.ask(), Passed)
    world.do(ManualOverride(move="reset"))
    assert world.state.is_calm
    assert world.state.hand == ""


def test_a_failure_seen_by_one_worker_alone_does_not_open_a_shared_breaker():  # E-B15
    world = World(Breaker(failures=5, quorum=2))
    for _ in range(50):
        world.tell("failure", worker="on a bad network")
    assert isinstance(world.ask(), Passed)
    assert world.tell("failure", worker="elsewhere") is True


def test_what_the_server_stated_opens_it_at_once_and_exactly_so_long():  # E-B15, E-B16
    world = World(Breaker(quorum=9))
    assert world.do(OpenBreaker(stated=7200, because="resets at 7pm")) is True
    assert world.ask() == Shut(7200.0, "resets at 7pm")
    assert world.do(OpenBreaker(stated=60, because="shorter")) is False
    world.now, world.era = 5.0, "another boot"
    assert isinstance(world.ask(), Shut)


def test_a_failure_that_names_a_time_opens_no_shorter():
    world = World()
    for _ in range(5):
        world.tell("failure", stated=300)
    assert world.ask() == Shut(300.0, "5 failures in a row")


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        (Kind.SERVER, "failure"),
        (Kind.TIMEOUT, "failure"),
        (Kind.CLIENT, "alive"),
        (Kind.AUTH, "alive"),
        (Kind.BAD_ANSWER, "alive"),
        (Kind.RATE_LIMIT, "neither"),  # E-B12
        (Kind.QUOTA, "neither"),
        (Kind.UNKNOWN, "neither"),
    ],
)
def test_only_what_speaks_of_the_targets_health_counts(kind, result):
    assert result_of("failed", Failure(kind=kind)) == result


def test_a_mistake_that_was_never_sent_says_nothing_about_the_target():
    assert result_of("failed", Failure(kind=Kind.CLIENT, reach=Reach.NEVER_SENT)) == "neither"
    assert (
        result_of("failed", Failure(kind=Kind.BAD_ANSWER, reach=Reach.MAYBE_APPLIED)) == "neither"
    )


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(SettingError, match=r"^Breaker.failures needs a whole number >= 1; got 0$"):
        Breaker(failures=0)
    with pytest.raises(SettingError, match=r"^Breaker.open_for needs more than 0 seconds; got 0$"):
        Breaker(open_for=0)


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "success", "failure", "alive", "neither"]),
        st.sampled_from("abcd"),
        st.integers(0, 3),
        st.floats(0, 40),
    ),
    max_size=60,
)


@given(steps=steps, probes=st.integers(1, 2))
def test_whatever_happens_it_can_be_written_down_and_never_hands_out_more(steps, probes):
    world = World(Breaker(failures=3, open_for=30, probes=probes, lease=20))
    for what, permit, back, passes in steps:
        world.now += passes
        if what == "ask":
            answer = world.ask(permit)
            if isinstance(answer, Shut):
                assert 0 < answer.retry_in <= 30
        else:
            world.tell(what, permit, world.state.generation - back, worker=permit)
        live = [p for p in world.state.probes if p.due.left(Moment(world.now, 0)) > 0]
        assert len(live) <= probes
        assert BREAKER.unpack(BREAKER.pack(world.state)) == world.state


@pytest.mark.parametrize("move", ["block", "allow"])
def test_a_hand_for_a_time_goes_away_by_itself_and_only_then(move):  # E-B9
    world = World()
    world.do(ManualOverride(move=move, seconds=600))
    assert not world.state.is_calm
    world.now = 599.0
    for _ in range(9):
        world.tell("failure" if move == "allow" else "success")
    answer = world.ask()
    assert answer == (Shut(1.0, "blocked manually") if move == "block" else Passed(1))
    world.now = 600.0
    assert world.ask() == Passed(1)
    world.opened()  # and it counts again
    assert isinstance(world.ask(), Shut)


def test_a_hand_for_a_time_survives_a_reboot():
    world = World()
    world.do(ManualOverride(move="block", seconds=600))
    world.era, world.now, world.wall = "next boot", 0.0, world.wall + 100
    assert world.ask() == Shut(500.0, "blocked manually")


# A streak is no outage


def fails(world, count, *, every=0.0):
    """Whether the breaker opened while `count` calls failed, one in `every` seconds."""
    opened = False
    for _ in range(count):
        world.now += every
        opened = world.tell("failure") or opened
    return opened


def test_failures_that_end_together_are_one_event():
    world = World(Breaker())
    assert not fails(world, 13)
    assert fails(world, 1)
    assert world.ask() == Shut(1.0, "14 failures in a row")


def test_failures_apart_open_it_at_the_tenth():
    world = World(Breaker())
    assert not fails(world, 9, every=1.0)
    assert fails(world, 1, every=1.0)


@pytest.mark.parametrize("seed", range(20))
def test_it_never_opens_where_a_third_of_the_calls_fails_by_chance(seed):
    dice, world = random.Random(seed), World(Breaker())
    for _ in range(5000):
        world.now += dice.choice([0.0, 0.01, 0.5])
        assert not world.tell("failure" if dice.random() < 0.3 else "success")


def test_failures_that_are_quicker_than_answers_do_not_outvote_calls_under_way():
    world = World(Breaker())
    for _ in range(29):
        assert not world.tell("failure", unanswered=30)
    assert world.tell("failure", unanswered=30)


def test_older_calls_under_way_count_in_the_share_of_failures():
    world = World(Breaker())
    for _ in range(15):
        world.tell("success")
        for _ in range(4):
            assert not world.tell("failure", unanswered=50)
    assert any(world.tell("failure", unanswered=0) for _ in range(4))


def test_calls_from_before_an_outage_do_not_hide_it():
    world = World(Breaker())
    assert [world.tell("failure", unanswered=10_000) for _ in range(500)] == [False] * 499 + [True]


def test_no_success_opens_it():
    world = World(Breaker())
    for _ in range(25):
        world.tell("failure", unanswered=30)
    assert not world.tell("success")
    assert isinstance(world.ask(), Passed)


@pytest.mark.parametrize("share", [0.8, 0.95])
def test_it_opens_where_most_calls_fail_though_some_succeed(share):
    dice, world = random.Random(7), World(Breaker())
    results = ["failure" if dice.random() < share else "success" for _ in range(100)]
    assert any(world.tell(result) for result in results)


def test_a_share_is_counted_over_the_window_alone():
    world = World(Breaker(rate=0.5, calls=20, window=30))
    for _ in range(30):
        world.now += 4.0  # eight calls in a window
        assert not world.tell("failure")


def test_a_row_alone_opens_it_where_a_row_was_asked_for_and_a_share_where_that_was():
    world = World(Breaker(failures=50))
    assert not fails(world, 49, every=0.1)
    assert fails(world, 1)
    world = World(Breaker(rate=0.5, calls=40))
    assert not fails(world, 39)
    assert fails(world, 1)
    assert world.ask() == Shut(1.0, "40 of 40 calls failed within 30s")


def test_slow_answers_open_it_where_somebody_asked_for_that():
    world = World(Breaker(slow=2, slow_rate=0.5))
    for _ in range(19):
        assert not world.tell("success", is_slow=True)
    assert world.tell("success", is_slow=True)
    assert world.ask() == Shut(1.0, "20 of 20 calls took longer than 2s")


def test_a_few_failures_are_forgotten_with_the_next_success():
    world = World(Breaker())
    fails(world, 2)
    world.tell("success")
    assert world.state.is_calm


def test_it_stays_open_for_a_seventh_of_the_time_that_the_target_is_down():
    world = World(Breaker())
    fails(world, 10, every=0.5)
    waits = []
    while world.now < 1200:
        shut = world.ask("probe")
        assert isinstance(shut, Shut)
        waits.append((world.now, shut.retry_in))
        world.now += shut.retry_in
        assert world.call("failure", "probe") == Passed(world.state.generation - 1, is_probe=True)
    for at, wait in waits:
        assert wait == pytest.approx(min(max((at - 0.5) / 7, 1.0), 60.0), rel=0.01)
    assert len(waits) < 50


def test_breakers_that_share_nothing_do_not_probe_together():
    times = set()
    for roll in (0.0, 0.3, 0.9):
        world = World(Breaker())
        fails(world, 13)
        world.tell("failure", roll=roll)
        times.add(world.ask().retry_in)
    assert len(times) == 3


@pytest.mark.parametrize("name", ["rate", "slow_rate"])
def test_a_share_that_is_none_is_refused(name):
    with pytest.raises(SettingError, match=rf"^Breaker.{name} needs a share above 0"):
        Breaker(**{name: 50})

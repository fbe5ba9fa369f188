from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.moment import Moment
from mulligan.once.claims import (
    CLAIM,
    Busy,
    Claim,
    Done,
    Drop,
    Finish,
    Mine,
    Mismatch,
    Renew,
    Take,
)


def at(now: float, era: str = "") -> Moment:
    return Moment(now, 1e9 + now, era)


def lapsed(state: Claim, *, after: float) -> Claim:
    """The claim after another caller has asked for it every second, in vain."""
    for now in range(int(after)):
        state, _ = take(state, "watcher", now=now)
    return state


def take(state, holder, *, now=0.0, fingerprint="pay 5", lease=30.0, era=""):
    return Take(holder=holder, fingerprint=fingerprint, lease=lease)(state, at(now, era))


def test_one_takes_it_and_the_others_wait_for_its_result():  # E-F4
    state, first = take(Claim(), "a")
    state, second = take(state, "b", now=10)  # no caller asked meanwhile: five seconds of ten count
    assert (first, second) == (Mine(1), Busy(25.0, "a", 1))
    state, stored = Finish(holder="a", epoch=1, fingerprint="pay 5", value='"paid"', ttl=60)(
        state, at(11)
    )
    assert stored
    assert take(state, "b", now=12)[1] == Done('"paid"')


def test_a_failure_is_done_again_by_whoever_comes_next():  # E-F6
    state, _ = take(Claim(), "a")
    state, held = Drop(holder="a", epoch=1)(state, at(1))
    assert held
    assert take(state, "b", now=1)[1] == Mine(2)


def test_whoever_slept_through_its_lease_is_fenced():  # E-F5
    state, _ = take(Claim(), "zombie")
    state, answer = take(lapsed(state, after=30), "successor", now=31)
    assert answer == Mine(2)
    for late in (
        Finish(holder="zombie", epoch=1, fingerprint="pay 5", value="1", ttl=60),
        Renew(holder="zombie", epoch=1, fingerprint="pay 5", lease=30),
        Drop(holder="zombie", epoch=1),
    ):
        assert late(state, at(32)) == (state, False)


def test_a_late_holder_may_finish_while_nobody_has_taken_over():
    state, _ = take(Claim(), "slow")
    assert (
        Finish(holder="slow", epoch=1, fingerprint="pay 5", value="1", ttl=60)(state, at(99))[1]
        is True
    )


def test_the_same_key_for_something_else_is_a_mistake():  # E-F3
    state, _ = take(Claim(), "a", fingerprint="pay 5")
    assert take(state, "b", fingerprint="pay 6")[1] == Mismatch("pay 5")


def test_a_key_whose_use_is_in_doubt_may_be_repeated_and_used_for_nothing_else():  # E-F3, E-F11
    state, _ = take(Claim(), "a", fingerprint="pay 5")
    silent, dropped = (
        lapsed(state, after=30),
        Drop(holder="a", epoch=1, doubt=60)(state, at(1))[0],
    )
    for open_, now in ((silent, 31.0), (dropped, 2.0)):
        assert take(open_, "b", now=now, fingerprint="pay 6")[1] == Mismatch("pay 5")
        assert take(open_, "b", now=now, fingerprint="pay 5")[1] == Mine(2)
    assert take(dropped, "b", now=62, fingerprint="pay 6")[1] == Mine(2)


def test_a_key_whose_use_is_known_to_have_failed_is_free_for_anything():
    state, _ = take(Claim(), "a", fingerprint="pay 5")
    state, _ = Drop(holder="a", epoch=1)(state, at(1))
    assert take(state, "b", now=1, fingerprint="pay 6")[1] == Mine(2)


def test_a_reboot_frees_what_was_held_and_keeps_what_was_done():  # E-F1
    state, _ = take(Claim(), "a", lease=1e6)
    assert take(state, "b", era="next boot")[1] == Mine(2)
    state, _ = Finish(holder="a", epoch=1, fingerprint="pay 5", value="1", ttl=1e6)(state, at(1))
    assert take(state, "b", now=2, era="next boot")[1] == Done("1")


def test_what_was_done_is_forgotten_after_its_time():
    state, _ = take(Claim(), "a")
    state, _ = Finish(holder="a", epoch=1, fingerprint="pay 5", value="1", ttl=60)(state, at(0))
    assert take(state, "b", now=61)[1] == Mine(2)


def test_saying_it_twice_is_saying_it_once():
    state, mine = take(Claim(), "a")
    assert take(state, "a", now=1) == (state, mine)
    finish = Finish(holder="a", epoch=1, fingerprint="pay 5", value="1", ttl=60)
    state, _ = finish(state, at(2))
    assert finish(state, at(3)) == (state, True)


@given(
    st.lists(
        st.tuples(st.sampled_from("tfdr"), st.sampled_from("abc"), st.floats(0, 20)), max_size=50
    )
)
def test_no_two_hold_it_and_no_epoch_comes_twice(moves):
    state, now = Claim(), 0.0
    epochs: dict[int, str] = {}
    mine: dict[str, int] = {}
    for what, holder, passes in moves:
        now += passes
        if what == "t":
            state, answer = take(state, holder, now=now, lease=25)
            if isinstance(answer, Mine):
                assert epochs.setdefault(answer.epoch, holder) == holder
                mine[holder] = answer.epoch
        else:
            epoch = mine.get(holder, 0)
            operation: Any = {
                "f": Finish(
                    holder=holder, epoch=epoch, fingerprint="pay 5", value=f'"{holder}"', ttl=15
                ),
                "d": Drop(holder=holder, epoch=epoch),
                "r": Renew(holder=holder, epoch=epoch, fingerprint="pay 5", lease=25),
            }[what]
            newest = max(epochs, default=0)
            state, landed = operation(state, at(now))
            if landed:
                assert epoch == newest
        assert CLAIM.unpack(CLAIM.pack(state)) == state

"""What the entries of a run amount to, whatever their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunAdopted,
    RunCancelled,
    RunMade,
    RunRemark,
    RunReopened,
    RunRescheduled,
    RunTaken,
    WorkDelivered,
    WorkVerified,
    packed,
    unpacked,
)
from mulligan.run.journal.state import state_of

MADE = RunMade(0.0, "claude", "claude", "/", "host", 0, "", {}, [])
OVER = RunCancelled(9.0, "cancelled by the user")

STEPS = st.one_of(
    st.just(MADE),
    st.builds(RunTaken, st.just(1.0), st.sampled_from(["a", "b"])),
    st.just(RunAdopted(1.0, "m", "other", 1)),
    st.builds(
        AttemptBegun, st.just(1.0), st.integers(1, 3), st.just("start"), st.just("s"), st.just("")
    ),
    st.builds(
        AttemptEnd,
        st.just(1.0),
        st.integers(0, 3),
        st.just(1.0),
        then=st.sampled_from(["done", "again", "stop", "pause"]),
        until=st.sampled_from([None, 5.0]),
        # What is not said here may be anything, and NaN is not what it was when it is read again.
        cost=st.sampled_from([None, 0.5]),
        reset_at=st.sampled_from([None, 5.0]),
        silent=st.sampled_from([None, 600.0]),
        announced=st.sampled_from([0.0, 3600.0]),
    ),
    st.builds(
        RunRescheduled,
        st.just(1.0),
        st.just(2.0),
        st.just("moved"),
        horizon=st.sampled_from([None, 60.0]),
    ),
    st.just(WorkVerified(1.0, 1, is_good=True, said="")),
    st.just(WorkDelivered(1.0)),
    st.builds(RunReopened, st.just(1.0), st.sampled_from([None, 2.0])),
    st.just(RunRemark(1.0, "a remark")),
    st.just(RunCancelled(1.0, "its phase failed", is_for_good=False)),
)
ENTRIES = st.lists(st.tuples(STEPS, st.integers(1, 4)), max_size=12)


def folded(entries):
    state = state_of([step for step, _ in entries], [epoch for _, epoch in entries])
    assert state is not None
    return state


@given(ENTRIES, ENTRIES)
def test_nothing_revives_a_run_that_was_cancelled(before, after):
    entries = [(MADE, 1), *before]
    epoch = folded(entries).epoch + 1  # a cancel raises the epoch
    was_done = folded(entries).status == "done"
    found = folded([*entries, (OVER, epoch), *[(step, epoch + more) for step, more in after]])
    if not was_done:
        assert (found.status, found.is_final, found.until) == ("cancelled", True, None)


@given(ENTRIES, ENTRIES)
def test_work_that_is_done_is_not_begun_again_but_by_a_reopening(before, after):
    entries = [(MADE, 1), *before]
    state = folded(entries)
    if state.status != "done":
        return
    later = [
        (step, state.epoch + more)
        for step, more in after
        if not isinstance(step, RunReopened)
        and not (isinstance(step, RunCancelled) and not step.is_for_good)
    ]
    found = folded([*entries, *later, (OVER, 99)])
    assert (found.status, found.begun) == ("done", state.begun)


@given(ENTRIES, ENTRIES)
def test_what_an_older_epoch_says_changes_nothing(before, late):
    entries = [(MADE, 1), *before, (RunTaken(3.0, "new holder"), 9)]
    state = folded(entries)
    found = folded([*entries, *[(step, epoch) for step, epoch in late]])
    assert found == state._replace(steps=found.steps)


@given(ENTRIES)
def test_epochs_never_fall_and_takings_are_no_changes(entries):
    whole = [(MADE, 1), *entries]
    epochs = [folded(whole[:size]).epoch for size in range(1, len(whole) + 1)]
    assert epochs == sorted(epochs)
    state = folded(whole)
    taken = folded([*whole, (RunTaken(4.0, "next"), state.epoch + 1)])
    assert (taken.changes, taken.status) == (state.changes, state.status)


@given(ENTRIES, st.data())
def test_entries_folded_in_two_parts_give_the_state_of_the_whole(entries, data):
    whole = [(MADE, 1), *entries]
    cut = data.draw(st.integers(1, len(whole)))
    steps, epochs = [step for step, _ in whole], [epoch for _, epoch in whole]
    first = state_of(steps[:cut], epochs[:cut])
    assert state_of(steps[cut:], epochs[cut:], before=first) == folded(whole)


@given(STEPS)
def test_what_is_written_is_read_again(step):
    assert unpacked(packed(step)) == step


def test_bytes_that_are_no_text_are_written_and_read_again():
    made = MADE._replace(cwd="/caf\udce9", variables=["N\udcff"])
    assert packed(made).isascii()
    assert unpacked(packed(made)) == made


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "has no step"),
        ('{"step": 7}', "has no step"),
        ('{"step": "forked", "at": 1}', "a newer mulligan wrote it"),
        ('{"step": "taken", "at": 1}', "has no 'holder'"),
        ('{"step": "taken", "at": "noon", "holder": ""}', "unusable 'at'"),
        ('{"step": "ended", "at": 1, "attempt": 1, "took": 1, "then": "jump"}', "unusable 'then'"),
        (f'{{"step": "taken", "at": {10**400}, "holder": ""}}', "unusable 'at'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(body, words):
    with pytest.raises(ValueError, match=words):
        unpacked(body)


def test_fields_that_a_later_version_added_are_left_out():
    assert unpacked('{"step": "remark", "at": 1, "text": "x", "colour": "red"}') == RunRemark(
        1, "x"
    )

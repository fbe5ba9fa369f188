from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.moment import Due, Moment

times = st.floats(0, 1e10)
spans = st.floats(0, 1e6)
START = Moment(1000.0, 5e9, "boot-1")


def test_a_lease_runs_out_on_the_clock_it_was_measured_on():
    lease = START.lease(30)
    assert lease.left(START) == 30
    assert lease.left(Moment(1029.0, 5e9, "boot-1")) == 1
    assert lease.left(Moment(1031.0, 5e9, "boot-1")) == 0


def test_a_stepped_calendar_changes_nothing_within_a_boot():  # E-B7
    for due in (START.lease(30), START.stated(30)):
        assert due.left(Moment(1010.0, 5e9 + 3600, "boot-1")) == 20
        assert due.left(Moment(1010.0, 5e9 - 3600, "boot-1")) == 20


def test_another_boot_ends_a_lease_but_not_what_a_server_stated():  # E-B14
    after = Moment(3.0, 5e9 + 40, "boot-2")
    assert START.lease(3600).left(after) == 0
    assert START.stated(3600).left(after) == 3560


def test_a_clock_that_jumped_back_does_not_stretch_a_lease():
    assert START.lease(30).left(Moment(-3000.0, 5e9, "boot-1")) == 0


moments = st.builds(Moment, times, times, st.sampled_from("ab"))


@given(begin=moments, span=spans, other=moments)
def test_nothing_lasts_longer_than_it_was_meant_to(begin, span, other):
    for due in (begin.lease(span), begin.stated(span)):
        assert 0 <= due.left(other) <= due.span


def test_a_due_is_plain_data():
    assert START.stated(1) == Due(1001.0, 1, "boot-1", 5e9 + 1)

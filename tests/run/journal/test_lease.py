"""Who holds a run: every standing of a lease, seen from everywhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from mulligan.run.journal.lease import LEASE, Holder, holder_of, standing
from mulligan.run.journal.store import is_alive, machine_id, myself
from mulligan.stores.entries import StreamLease

ME = Holder("t1", "100", "7", "ns.1", "boot-a", "machine", "host")
DEAD, ALIVE = (lambda _pid, _began: False), (lambda _pid, _began: True)
FRESH, STALE = 1000.0 - LEASE / 2, 1000.0 - LEASE


def lease(seen, boot="boot-a", **more):
    return StreamLease(ME._replace(token="t2", pid="200", **more).text, boot, seen)


@pytest.mark.parametrize(
    ("found", "is_alive_", "expected"),
    [
        (None, ALIVE, "free"),
        (lease(FRESH), ALIVE, "held"),
        (lease(FRESH), DEAD, "free"),  # a dead holder need not be waited for
        (lease(STALE), ALIVE, "silent"),  # stopped: its user may take it, no worker does
        (lease(STALE), DEAD, "free"),
        # From another pid namespace its id says nothing: only the lease counts.
        (lease(FRESH, pids="ns.2"), DEAD, "held"),
        (lease(STALE, pids="ns.2"), ALIVE, "free"),
        (lease(FRESH, boot="boot-b"), ALIVE, "free"),  # nobody survives a reboot
    ],
)
def test_every_standing_of_a_lease(found, is_alive_, expected):
    assert standing(found, ME, 1000.0, is_alive_) == expected


def test_a_holder_is_what_its_text_says_also_where_something_is_unknown():
    assert holder_of(ME.text) == ME
    assert holder_of(ME._replace(pids="").text) == ME._replace(pids="")
    assert holder_of("host 12@99.ab token").token == "host"  # an older journal: nothing matches


def test_this_process_is_alive_and_another_that_has_its_number_is_not():
    me = myself("machine")
    assert is_alive(me.pid, me.began)
    assert not is_alive(me.pid, "yesterday")
    assert not is_alive("", "")
    assert me.token != myself("machine").token


def test_the_id_of_a_machine_is_made_once_and_private(tmp_path):
    made = machine_id(tmp_path)
    assert (len(made), machine_id(tmp_path)) == (32, made)
    assert (tmp_path / "machine-id").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["machine-id"]


def test_an_id_that_a_power_cut_left_empty_is_made_again(tmp_path):
    (tmp_path / "machine-id").touch()
    assert len(machine_id(tmp_path)) == 32


@pytest.mark.parametrize("is_empty", [False, True])
def test_all_who_make_the_machines_id_at_once_get_the_same_one(tmp_path, is_empty):
    for number in range(50):
        folder, together = tmp_path / str(number), Barrier(4)
        folder.mkdir()
        if is_empty:
            (folder / "machine-id").touch()

        def make(_, folder=folder, together=together):
            together.wait(10)
            return machine_id(folder)

        with ThreadPoolExecutor(4) as pool:
            assert set(pool.map(make, range(4))) == {machine_id(folder)}

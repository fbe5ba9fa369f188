"""The targets ``a{b}``, ``a(b)`` and ``a(b`` shared one breaker on Redis.

Braces have a meaning in the keys of a cluster, and were replaced by parentheses. Names are escaped
now, so that different names have different keys, and each can be read back from its key.
"""

from __future__ import annotations

import os
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.shared.breaker import BREAKER, ManualOverride
from mulligan.stores.entries import JournalLine
from mulligan.stores.redis.store import Redis
from mulligan.stores.state_machine import Key

NOWHERE = Redis("redis://127.0.0.1:1/0")
AWKWARD = ["a{b}", "a(b)", "a(b", "a{b", "{}", "", "a|b", "a%7Bb%7D", "a:b", "a}:breaker", "*", "ä"]
_numbers = count()

names = st.text(alphabet=st.sampled_from("ab{}()|:%7BD*[]?\\ä"), max_size=8)
keys = st.builds(Key, names, names, names)


@given(keys, keys)
def test_different_states_have_different_keys(one, other):
    mine, theirs = NOWHERE.state._names(one), NOWHERE.state._names(other)
    assert (one == other) == (mine == theirs)
    if one != other:
        assert not set(mine) & set(theirs)


@given(names, names)
def test_different_streams_have_different_keys(one, other):
    mine, theirs = NOWHERE.journal._names(one), NOWHERE.journal._names(other)
    assert (one == other) == bool(set(mine) & set(theirs))


@given(names, names, names, names)
def test_all_parts_of_a_target_live_on_one_node_of_a_cluster(target, scope, part, other):
    """The server hashes what stands between the first brace and the first closing one after it."""
    tags = set()
    for each in (part, other):
        for name in NOWHERE.state._names(Key(target, each, scope)):
            tag = name[name.index("{") + 1 : name.index("}")]
            assert tag
            tags.add(tag)
    assert len(tags) == 1


@pytest.mark.real
def test_a_server_keeps_them_apart_and_tells_their_names(server):
    store = Redis(server.url, f"test[{os.getpid()}]*-{next(_numbers)}")
    there = [Key(target, "breaker", scope) for target in AWKWARD for scope in ("", "s|{")]
    for number, key in enumerate(there):
        store.state.transact(key, ManualOverride(move="block", because=f"{number}"))
        store.journal.append(key.target, JournalLine(f"{number}", "1"))
    for number, key in enumerate(there):
        assert store.state.peek(key, BREAKER)[0].because == f"{number}"
    assert store.state.known(BREAKER) == tuple(sorted(there))
    assert store.journal.streams("") == tuple(sorted(AWKWARD))
    store.close()

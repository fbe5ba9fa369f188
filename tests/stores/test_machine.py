from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.once.claims import CLAIM
from mulligan.shared.breaker import BREAKER, Circuit
from mulligan.shared.gate.gate import GATE
from mulligan.shared.retry_tokens import TOKENS
from mulligan.stores.state_machine import unpacked

MACHINES = [BREAKER, CLAIM, GATE, TOKENS]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_the_state_nothing_has_happened_to_is_not_written_down(machine):
    assert machine.pack(machine.start) is None
    assert machine.unpack(None) == machine.start


def test_a_state_is_short_json():
    text = '[2,["w"],null,0,[],0,"","",null,null,[]]'
    assert BREAKER.pack(Circuit(streak=2, voters=("w",))) == text


def test_a_number_that_no_float_holds_is_refused():
    with pytest.raises(ValueError, match="expected <class 'float'>, found '1000"):
        unpacked(float, 10**400)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@given(
    text=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=12),
        max_leaves=20,
    )
)
def test_what_somebody_else_wrote_is_refused_and_never_half_believed(machine, text):
    import json

    try:
        state = machine.unpack(json.dumps(text))
    except ValueError:
        return
    assert isinstance(state, type(machine.start))

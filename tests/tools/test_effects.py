"""No fault sequence makes a keyed or unsafe tool act twice, also if the process is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mulligan
from mulligan.testing import status_error, virtual_time

# What a service can do with one request: whether it applies it, and what the caller sees.
FAULTS = {
    "ok": (True, None),
    "lost": (True, ConnectionResetError("reset by peer")),
    "late": (True, TimeoutError("no answer in time")),
    "gateway": (True, status_error(504, "gateway timeout")),
    "reset": (False, ConnectionResetError("reset by peer")),
    "refused": (False, ConnectionRefusedError("refused")),
    "busy": (False, status_error(503, "busy")),
    "limit": (False, status_error(429, "slow", headers={"retry-after": "2"})),
    "far": (False, status_error(429, "slow", headers={"retry-after": "900"})),
    "invalid": (False, status_error(422, "no")),
    "denied": (False, status_error(401, "no")),
    "bug": (True, KeyError("id")),
}


class Service:
    """Applies what the script says; honours keys if it is given one."""

    def __init__(self, script):
        self.script, self.effects, self.requests = list(script), [], 0
        self.keys = set()

    def handle(self, what, key=""):
        self.requests += 1
        name = self.script.pop(0) if self.script else "ok"
        is_applied, error = FAULTS[name]
        if is_applied and (not key or key not in self.keys):
            self.effects.append(what)
            self.keys.add(key)
        if error is not None:
            raise error
        return {"done": what}


@settings(max_examples=1000, deadline=None)
@given(
    script=st.lists(st.sampled_from(sorted(FAULTS)), max_size=12),
    effects=st.sampled_from(["keyed", "unsafe"]),
    key=st.sampled_from([(), ("order_id",)]),
    verify=st.sampled_from(["none", "honest", "unsure"]),
    new_ids=st.booleans(),
    model=st.lists(st.sampled_from(["same", "weather", "restart"]), max_size=6),
)
def test_no_sequence_of_faults_and_repeats_has_two_effects(
    script, effects, key, verify, new_ids, model
):
    """The model repeats its call whatever it is told; only reading would make that legitimate."""
    service = Service(script)
    looks = {
        "none": None,
        "honest": lambda: {"done": "7"} if service.effects else mulligan.NOT_APPLIED,
        "unsure": lambda: None,
    }

    def toolbox():
        tools = mulligan.Toolbox(run="run-1", repeats=3)

        @tools.tool(effects=effects, key=key, verify=looks[verify])
        def act(order_id: str) -> object:
            context = mulligan.current()
            assert context is not None
            return service.handle(order_id, context.key if effects == "keyed" else "")

        @tools.tool(effects="read")
        def weather() -> str:
            return "rain"

        @tools.tool(effects="read", target="act")
        def look() -> list[str]:
            return service.effects

        return tools

    with virtual_time() as clock:
        tools = toolbox()
        for number, step in enumerate(["same", *model]):
            # A model that plans again after a crash makes new ids; a key by them is another one.
            if step == "restart" and (key or effects == "unsafe" or not new_ids):
                tools = toolbox()
            before = clock.now()
            if step == "weather":
                tools.run_sync("weather")
            else:
                call_id = f"call-{number}" if new_ids else "call-1"
                result = tools.run_sync("act", {"order_id": "7"}, call_id=call_id)
                assert len(result.text.encode()) <= 1024
                if not result.is_error:
                    assert service.effects == ["7"]
                    break
            assert clock.now() - before <= 31
            assert len(service.effects) <= 1
    assert len(service.effects) <= 1


@settings(max_examples=100, deadline=None)
@given(script=st.lists(st.sampled_from(sorted(FAULTS)), max_size=6))
def test_a_model_that_reads_first_can_repeat_an_unsafe_call(script):
    service = Service(script)
    tools = mulligan.Toolbox(repeats=100)

    @tools.tool(effects="unsafe")
    def act(order_id: str) -> object:
        return service.handle(order_id)

    @tools.tool(effects="read")
    def look() -> list[str]:
        return service.effects

    with virtual_time() as clock:
        for turn in range(10):
            if tools.run_sync("look").value:
                break
            tools.run_sync("act", {"order_id": "7"}, call_id=str(turn))
            clock.advance("20m")  # as it was told
    assert len(service.effects) <= 1
    if "denied" not in script and "invalid" not in script:
        assert service.effects


PROGRAM = Path(__file__).with_name("killed_agent.py")


@pytest.mark.real
@pytest.mark.parametrize("effects", ["keyed", "unsafe"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("by", ["call-id", "arguments"])
def test_a_call_survives_kill_9_with_one_effect(tmp_path, effects, when, by):
    """The process is killed before or after the service has applied the call."""
    ledger, argv = tmp_path / "ledger", [sys.executable, str(PROGRAM), str(tmp_path), effects, by]
    done = subprocess.run([*argv, when], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    applied = len(ledger.read_text().split()) if ledger.exists() else 0
    assert applied == (when == "after")
    done = subprocess.run([*argv, "never"], capture_output=True, text=True, timeout=60, check=False)
    result = json.loads(done.stdout)
    applied = len(ledger.read_text().split()) if ledger.exists() else 0
    if effects == "keyed":
        assert (result["is_error"], applied) == (False, 1)
    else:
        # It cannot be known whether it was applied: the model is told, and nothing is sent.
        assert (result["action"], applied) == ("verify", when == "after")

"""The sample lines in docs/once.md and docs/dead-letters.md are what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mulligan
from mulligan import DeadLetters, Guard, Once, replayable
from mulligan.dead_letters import replayable as registry
from mulligan.once.renewal import RENEWALS
from mulligan.stores.memory import Memory
from mulligan.testing import VirtualClock

DOCS = Path(__file__).parents[2] / "docs"


def lines(page: str) -> set[str]:
    """Everything in backticks in the tables of a page."""
    rows = re.findall(r"^\|.*$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {each for row in rows for each in re.findall("`([^`]+)`", row)}


def charge(amount):
    return amount


def refund(amount):
    return amount


def test_the_lines_about_keys_are_what_is_said(caplog):
    store = Memory()
    bank = Guard("bank", store=store, in_place=0.01, clock=VirtualClock())
    said: list[str] = []

    def note(error: type[Exception], *args, guard=bank):
        with pytest.raises(error) as caught:
            guard.once(*args)
        said.append(f"{type(caught.value).__name__}: {caught.value}")

    bank.once("order-17", charge, 5)
    note(mulligan.KeyReused, "order-17", charge, 6)
    note(mulligan.KeyReused, "order-17", refund, 5)
    note(mulligan.SettingError, Once("x", ttl="1m"), charge, 5, guard=Guard("bank", store=store))

    def nested():
        note(mulligan.KeyBusy, "order-17", nested, guard=bank2)
        return 1

    bank2 = Guard("bank", store=Memory(), in_place=0.01, clock=VirtualClock())
    bank2.once("order-17", nested)
    assert set(said) <= lines("once.md")
    assert len(said) == 4


def test_the_line_about_being_overtaken_is_what_is_logged(caplog):
    store = Memory()
    runs: list[int] = []

    def charge():
        RENEWALS._due.clear()
        runs.append(1)
        if len(runs) == 1:
            (place,) = (key for key in store.keys._states if key.part.startswith("once/"))
            machine, state, keep = store.keys._states[place]
            store.keys._states[place] = machine, _lapsed(state), keep
            Guard("bank", store=store).once("order-17", charge)
        return len(runs)

    assert Guard("bank", store=store).once("order-17", charge) == 2
    (record,) = caplog.records
    assert record.getMessage() in lines("once.md")


def _lapsed(state):
    from dataclasses import replace

    return replace(state, due=replace(state.due, at=state.due.at - 60))


def test_the_lines_about_letters_are_what_is_said(monkeypatch):
    monkeypatch.setattr(registry, "_known", {})

    def notify(body, url="", token=""):
        raise ConnectionRefusedError("nobody listens")

    replayable("notify", secrets=("token",))(notify)
    store, said = Memory(), []
    hooks = Guard("hooks", store=store, dead_letters=True, attempts=1, effects="read")

    def plain():
        raise ConnectionRefusedError

    box = DeadLetters(store)
    for args in (
        (plain,),
        (notify, (1, 2)),
        (notify, 1, "?token=abcdef0123"),
        (notify, "x" * 9**6),
    ):
        with pytest.raises(ConnectionRefusedError):
            hooks.call(*args)
        said.append(box.all()[-1].letter.unfit)
    with pytest.raises(ConnectionRefusedError):
        hooks.call(notify, 1)
    (record,) = [each for each in box.all() if not each.letter.unfit]
    said.append(f"65f… refused: {box.hindrance(record)}")
    registry._known.clear()
    said.append(f"65f… refused: {box.hindrance(record)}")

    def changed(): ...

    changed.__name__ = "notify"
    replayable("notify", supply=lambda: {"token": ""})(changed)
    mark = box.replay(record)
    assert mark is not None
    said.append(f"65f… {mark.state}: {mark.because}")
    assert set(said) <= lines("dead-letters.md")

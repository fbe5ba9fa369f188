"""What goes wrong while a letter is replayed costs neither the letter nor a second call."""

from __future__ import annotations

from typing import Any

import pytest

from mulligan import DeadLetters, Guard, replayable
from mulligan.dead_letters import replayable as registry
from mulligan.errors import StoreDown, StoreError
from mulligan.once.claims import Finish
from mulligan.stores.memory import Memory
from mulligan.testing import virtual_time


class Receiver:
    """Takes nothing until `answer` is set; then it does what that says."""

    answer: Any = ConnectionRefusedError("nobody listens")

    def __init__(self) -> None:
        self.got: list[str] = []

    def __call__(self, event):
        self.got.append(event)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def receiver(tmp_path, monkeypatch) -> Receiver:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(registry, "_known", {})
    return Receiver()


def letters(place, receiver, store=None, **options) -> DeadLetters:
    """A box with one letter about a call of `receiver`."""

    def send(event, token=""):
        return receiver(event)

    replayable("send", **options)(send)
    guard = Guard("hooks", store=place.store, dead_letters=True, attempts=1, effects="read")
    with pytest.raises(ConnectionRefusedError):
        guard.call(send, "e1")
    receiver.got.clear()
    return DeadLetters(store or place.store)


@pytest.mark.parametrize(
    ("supply", "because"),
    [
        (lambda: dict[str, str]()["TOKEN"], "supply() of 'send' raised KeyError: 'TOKEN'"),
        (
            lambda: None,
            "supply() of 'send' needs to return the secrets by parameter; got a NoneType",
        ),
    ],
)
def test_secrets_that_cannot_be_supplied_refuse_the_letter(place, receiver, supply, because):
    box = letters(place, receiver, secrets=("token",), supply=supply)
    mark = box.replay(*box.all())
    assert mark is not None
    assert (mark.state, mark.because) == ("refused", because)
    assert receiver.got == []


def test_what_to_do_about_secrets_is_not_masked(place, receiver):
    box = letters(place, receiver, secrets=("token",))
    mark = box.replay(*box.all())
    assert mark is not None
    assert mark.because == (
        "'send' needs token, which letters do not store; give replayable('send', …) a function "
        "for it, supply=…"
    )


def test_a_replay_that_is_interrupted_says_so_and_can_be_replayed(place, receiver):
    box = letters(place, receiver)
    receiver.answer = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        box.replay(*box.all())
    (record,) = box.all()
    assert record.state == "failed"
    assert record.marks[-1].because == "it was interrupted, and may have been made"
    receiver.answer = "ok"
    mark = box.replay(record)
    assert mark is not None
    assert mark.state == "replayed"


class Failing:
    """Keys that do not take a result as often as told."""

    def __init__(self, keys, times: int, error: BaseException) -> None:
        self.keys, self.times, self.error = keys, times, error

    def transact(self, key, operation):
        if isinstance(operation, Finish) and key.part.startswith("letter/") and self.times:
            self.times -= 1
            raise self.error
        return self.keys.transact(key, operation)

    async def atransact(self, key, operation):
        return self.transact(key, operation)


def test_a_replay_that_is_not_recorded_at_once_is_recorded_later(flaky, place, receiver):
    flaky.keys = Failing(place.store.keys, 3, StoreDown("test:", "gone"))
    box = letters(place, receiver, store=flaky)
    receiver.answer = "ok"
    with virtual_time() as clock:
        mark = box.replay(*box.all())
        assert clock.now() == pytest.approx(3.5)
    assert mark is not None
    assert mark.state == "replayed"
    again = DeadLetters(place.another()).replay(*box.all())
    assert again is not None
    assert receiver.got == ["e1"]


@pytest.mark.parametrize(
    ("error", "times"), [(StoreDown("test:", "gone"), 99), (KeyboardInterrupt(), 1)]
)
def test_a_replay_that_cannot_be_recorded_is_not_made_again_by_this_process(
    flaky, place, receiver, error, times
):
    flaky.keys = Failing(place.store.keys, times, error)
    box = letters(place, receiver, store=flaky)
    receiver.answer = "ok"
    (record,) = box.all()
    with virtual_time(), pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        box.replay(record)
    if isinstance(error, StoreDown):
        assert str(caught.value) == (
            f"test:: letter {record.letter.id} was replayed, which could not be recorded (gone); "
            f"purge it"
        )
    mark = box.replay(record)
    assert mark is not None
    assert mark.state == "replayed"
    assert receiver.got == ["e1"]


def test_a_letter_that_waits_for_one_store_is_not_replayed_by_another(place, receiver, monkeypatch):
    def down(*args):
        raise StoreDown("test:down", "gone")

    elsewhere = Memory()
    monkeypatch.setattr(elsewhere, "url", "test:down")
    monkeypatch.setattr(elsewhere.journal, "append", down)

    def send(event):
        return receiver(event)

    replayable("send")(send)
    guard = Guard("hooks", store=elsewhere, dead_letters=True, attempts=1)
    with pytest.raises(ConnectionRefusedError):
        guard.once("order-17", send, "e1")
    receiver.answer = "ok"
    box = DeadLetters(place.store)
    (record,) = box.all()
    assert box.hindrance(record) == "it belongs to the store test:down; replay it with that store"
    mark = box.replay(record)
    assert mark is not None
    assert (mark.state, mark.because) == ("refused", box.hindrance(record))
    assert box.all() == (record,)
    assert receiver.got == ["e1"]

"""Guards inside guards: layers do not multiply (E-C7, E-C8)."""

from __future__ import annotations

import pickle

import pytest

import mulligan
from mulligan.testing import Scripted, VirtualClock, status_error


def guard(attempts=3, **options):
    return mulligan.Guard(
        attempts=attempts, **{"effects": "read", "clock": VirtualClock(), **options}
    )


def test_three_layers_of_three_attempts_make_three_calls():
    script = Scripted(status_error(503))
    inner, middle, outer = guard(), guard(), guard()
    with pytest.raises(Exception, match="status 503"):
        outer.call(middle.call, inner.call, script)
    assert len(script.calls) == 3


def test_an_error_raised_from_an_exhausted_one_is_not_retried_either():
    script = Scripted(status_error(503))
    inner, outer = guard(), guard(on=RuntimeError)

    def wrapped():
        try:
            inner.call(script)
        except Exception as error:
            raise RuntimeError("tool failed") from error

    with pytest.raises(RuntimeError):
        outer.call(wrapped)
    assert len(script.calls) == 3


def test_a_group_that_holds_an_exhausted_error_is_not_retried():
    script = Scripted(status_error(503))

    def grouped():
        try:
            guard().call(script)
        except Exception as error:  # noqa: BLE001 -- as a task group does
            raise ExceptionGroup("tasks failed", [error]) from None

    with pytest.raises(ExceptionGroup):
        guard().call(grouped)
    assert len(script.calls) == 3


def test_what_the_inner_guard_did_not_understand_the_outer_one_may_judge():
    class Flaky(Exception):
        pass

    script = Scripted(Flaky(), Flaky(), "ok")
    assert guard(on=Flaky).call(guard().call, script) == "ok"


def test_one_note_and_one_story_however_many_guards():
    error = status_error(503)
    with pytest.raises(Exception, match="status 503"):
        guard().call(guard().call, Scripted(error))
    assert [note.partition(":")[0] for note in error.__notes__] == ["mulligan"]
    story = mulligan.story(error)
    assert story is not None
    assert story.attempts == 3


def test_the_outer_guards_fallback_answers_for_the_inner_ones_exhaustion():
    outer = guard(fallback="other provider")
    assert outer.call(guard().call, Scripted(status_error(503))) == "other provider"


def test_an_exception_object_that_is_raised_again_in_another_call_starts_afresh():
    error = status_error(503)
    for _ in range(3):
        script = Scripted(error)
        with pytest.raises(Exception, match="status 503"):
            guard().call(script)
        assert len(script.calls) == 3
    assert len(error.__notes__) == 1


def test_a_story_from_another_process_counts_as_an_ending():
    error = ConnectionResetError("reset")
    with pytest.raises(ConnectionResetError):
        guard().call(Scripted(error))
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own
    assert mulligan.story(arrived) == mulligan.story(error)
    script = Scripted(arrived)
    with pytest.raises(ConnectionResetError):
        guard(effects="read").call(script)
    assert len(script.calls) == 1


def test_an_annotated_error_can_be_unpickled_without_mulligan():
    error = ConnectionResetError("reset")
    with pytest.raises(ConnectionResetError):
        guard().call(Scripted(error))
    assert b"mulligan.core" not in pickle.dumps(error)
    assert b"mulligan.calls" not in pickle.dumps(error)


class Frozen(Exception):
    """An exception that takes no attributes by ordinary means."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


class Opaque(Exception):
    """An exception that will have neither attribute nor note."""

    def add_note(self, note):
        raise RuntimeError(note)

    def __setattr__(self, name, value):
        raise AttributeError(name)


@pytest.mark.parametrize("cls", [Frozen, Opaque])
def test_an_exception_with_a_will_of_its_own_comes_back_as_itself(cls):
    error = cls("mine")
    with pytest.raises(cls) as caught:
        guard(on=cls).call(Scripted(error))
    assert caught.value is error
    story = mulligan.story(error)
    assert story is not None
    assert story.attempts == 3


def test_a_story_tells_nothing_of_an_exception_that_was_never_guarded():
    assert mulligan.story(ValueError()) is None


def test_cycles_in_the_chain_of_causes_end():  # E-G6
    first, second = ValueError(""), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert mulligan.story(first) is None
    with pytest.raises(ValueError, match=r"^$"):
        guard().call(Scripted(first))

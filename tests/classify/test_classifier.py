from __future__ import annotations

import dataclasses

import pytest

from mulligan.classify.classifier import Classifier, classifier
from mulligan.core.failure import Failure, Kind, Reach, Retryability
from mulligan.errors import SettingError

NOW = 1_794_772_800.0


class OrderError(Exception):
    def __init__(self, code: str, **fields: object) -> None:
        super().__init__(f"order: {code}")
        self.code = code
        self.__dict__.update(fields)


class LockedError(OrderError):
    pass


def read(knowing: Classifier, error: Exception) -> Failure:
    return knowing.classify(error, now=NOW)


def test_without_additions_only_what_is_built_in_is_known():
    assert read(classifier, OrderError("ORDER_LOCKED")).kind is Kind.UNKNOWN
    assert read(classifier, TimeoutError()).kind is Kind.TIMEOUT


@pytest.mark.parametrize("kind", ["conditional", Kind.CONDITIONAL])
def test_a_code_of_ones_own_decides(kind):  # R-C16, R-C17
    knowing = classifier.adding(codes={"ORDER_LOCKED": kind})
    failure = read(knowing, OrderError("ORDER_LOCKED"))
    assert failure.kind is Kind.CONDITIONAL
    assert (failure.reach, failure.because) == (Reach.ANSWERED, "code order_locked")
    assert read(knowing, OrderError("OTHER")).kind is Kind.UNKNOWN


def test_a_code_in_a_body_decides_over_the_status():
    knowing = classifier.adding(codes={"E17": "quota"})
    error = OrderError("x", status_code=400, body={"error": {"code": "E17"}})
    assert read(knowing, error).kind is Kind.QUOTA


def test_a_code_of_ones_own_wins_over_a_built_in_one():
    knowing = classifier.adding(codes={"insufficient_quota": "rate_limit"})
    error = OrderError("insufficient_quota", status_code=429)
    assert read(classifier, error).kind is Kind.BILLING
    assert read(knowing, error).kind is Kind.RATE_LIMIT


def test_a_type_decides_for_its_subclasses_too():
    knowing = classifier.adding(types={OrderError: "server", TimeoutError: Kind.CLIENT})
    assert read(knowing, LockedError("x")).kind is Kind.SERVER
    assert read(knowing, TimeoutError()).kind is Kind.CLIENT
    nearer = knowing.adding(types={LockedError: "auth"})
    assert read(nearer, LockedError("x")).kind is Kind.AUTH


def test_a_type_may_have_a_function_that_says_everything():
    def explain(error: BaseException) -> Failure:
        return Failure(kind=Kind.SERVER, message="password=hunter2hunter2", reach=Reach.NEVER_SENT)

    failure = read(classifier.adding(types={OrderError: explain}), OrderError("x"))
    assert failure.reach is Reach.NEVER_SENT
    assert "hunter2" not in failure.message


@pytest.mark.parametrize(
    ("kind", "reach"),
    [
        ("network", Reach.MAYBE_APPLIED),
        ("timeout", Reach.MAYBE_APPLIED),
        ("server", Reach.ANSWERED),
        ("rate_limit", Reach.ANSWERED),
        ("circuit_open", Reach.NEVER_SENT),
    ],
)
def test_a_kind_implies_how_far_the_call_came(kind, reach):
    assert read(classifier.adding(types={OrderError: kind}), OrderError("x")).reach is reach


def test_a_predicate_is_asked_first_and_the_last_added_before_the_others():
    knowing = (
        classifier.adding(types={OrderError: "server"})
        .adding(predicate=lambda error: "auth" if "b" in str(error) else None)
        .adding(predicate=lambda error: Kind.CLIENT if "a" in str(error) else None)
    )
    assert read(knowing, OrderError("ab")).kind is Kind.CLIENT
    assert read(knowing, OrderError("b")).kind is Kind.AUTH
    assert read(knowing, OrderError("z")).kind is Kind.SERVER


def test_a_predicate_that_raises_hides_nothing():  # E-G8
    def broken(error: BaseException) -> None:
        raise ZeroDivisionError

    failure = read(classifier.adding(predicate=broken), ConnectionResetError("lost"))
    assert failure.kind is Kind.NETWORK
    assert failure.message == "lost"
    assert failure.because == (
        "ConnectionResetError; predicate broken raised ZeroDivisionError and was not heard"
    )


@pytest.mark.parametrize("nonsense", ["no_such_kind", 5, object()])
def test_a_predicate_that_answers_nonsense_hides_nothing(nonsense):
    failure = read(classifier.adding(predicate=lambda _: nonsense), TimeoutError())
    assert failure.kind is Kind.TIMEOUT
    assert "was not heard" in failure.because


def test_the_servers_own_statement_still_wins():
    knowing = classifier.adding(types={OrderError: "server"})
    failure = read(knowing, OrderError("x", status_code=500, headers={"x-should-retry": "false"}))
    assert failure.kind is Kind.SERVER
    assert failure.retryability is Retryability.NON_RETRYABLE


def test_adding_changes_nothing_that_exists():
    before = classifier.adding(codes={"A": "server"})
    after = before.adding(codes={"B": "server"})
    assert dict(before.codes) == {"a": Kind.SERVER}
    assert dict(after.codes) == {"a": Kind.SERVER, "b": Kind.SERVER}
    assert not classifier.codes
    with pytest.raises(dataclasses.FrozenInstanceError):
        after.predicates = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        after.codes["C"] = Kind.SERVER  # type: ignore[index]


def test_a_wrong_kind_names_the_nearest():
    with pytest.raises(SettingError) as caught:
        classifier.adding(codes={"X": "rate_limits"})
    assert str(caught.value) == (
        "codes['X'] needs a kind of failure; got 'rate_limits', did you mean 'rate_limit'?"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"types": {OrderError: 5}}, "types[OrderError] needs a kind or a function; got 5"),
        ({"types": {int: "server"}}, "types needs exception classes as keys; got <class 'int'>"),
        ({"types": {"X": "server"}}, "types needs exception classes as keys; got 'X'"),
        ({"codes": {"": "server"}}, "codes needs words as keys; got ''"),
        ({"codes": {5: "server"}}, "codes needs words as keys; got 5"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        classifier.adding(**settings)
    assert str(caught.value) == words


def test_answers_are_read_with_the_same_codes():
    knowing = classifier.adding(codes={"E17": "conditional"})
    failure = knowing.classify_answer(400, {}, {"error": {"code": "E17"}}, now=NOW)
    assert failure is not None
    assert failure.kind is Kind.CONDITIONAL
    assert knowing.classify_answer(200, {}, {"ok": True}, now=NOW) is None

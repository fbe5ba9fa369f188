"""Tokens of a model: reserved before a call, settled after it, on every store."""

from __future__ import annotations

import pytest

import mulligan
from mulligan.testing import Scripted, status_error


class Answer:
    """An answer that says how many tokens a window holds, and what it took itself."""

    def __init__(self, spent=0, remaining=1000) -> None:
        self.spent = spent
        self.headers = {
            "x-ratelimit-limit-tokens": "1000",
            "x-ratelimit-remaining-tokens": str(remaining),
            "x-ratelimit-reset-tokens": "60s",
        }


def guard(place, **options):
    options.setdefault("estimate", lambda words, **_: 100 * words)
    options.setdefault("spent", lambda answer: answer.spent)
    options.setdefault("observe", mulligan.headers_of)
    return mulligan.Guard("api", store=place.store, effects="read", in_place="1s", **options)


def test_a_call_passes_only_if_what_it_may_take_is_there(place):
    model = guard(place)
    model.call(lambda _words: Answer(), 1)

    def while_it_runs(_words):
        with pytest.raises(mulligan.LimitReached, match=r"^api: 400 of 1000 tokens left until"):
            guard(place).call(lambda _words: Answer(), 5)
        return guard(place).call(lambda _words: Answer(spent=400), 4)

    assert model.call(while_it_runs, 6).spent == 400


def test_what_was_not_taken_is_there_for_the_next(place):
    model = guard(place)
    for _ in range(5):
        # The server counts late: only the estimate and what was spent tell how much is left.
        model.call(lambda _words: Answer(spent=100), 6)
    with pytest.raises(mulligan.LimitReached, match=r"^api: 600 of 1000 tokens left"):
        model.call(lambda _words: Answer(), 7)


def test_what_a_rejected_call_would_have_taken_is_given_back(place):
    model = guard(place, attempts=1)
    model.call(lambda _words: Answer(), 0)
    wrong = status_error(400)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            model.call(Scripted(ConnectionRefusedError()), 6)  # never sent: nothing was taken
    with pytest.raises(type(wrong)):
        model.call(Scripted(wrong), 6)  # nobody knows what it took
    with pytest.raises(mulligan.LimitReached, match=r"^api: 400 of 1000 tokens left"):
        model.call(lambda _words: Answer(), 6)


def test_an_estimate_may_be_a_number_and_may_fail(place, caplog):
    plain = guard(place, estimate=700)
    plain.call(lambda _words: Answer(spent=700), 1)
    plain.call(lambda _words: Answer(spent=700), 1)
    with pytest.raises(mulligan.LimitReached, match=r"^api: 300 of 1000 tokens left"):
        plain.call(lambda _words: Answer(), 1)

    def broken(_words):
        raise KeyError("model")

    other = guard(place, estimate=broken, spent=broken)
    assert other.call(lambda _words: Answer(), 1).spent == 0
    assert "the estimate broken raised KeyError" in caplog.text
    assert "the observer broken raised KeyError" in caplog.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"estimate": -1}, "estimate needs a number >= 0 or a function; got -1"),
        ({"estimate": "many"}, "estimate needs a number >= 0 or a function; got 'many'"),
        ({"spent": 5}, "spent needs a function; got 5"),
        ({"estimate": 5, "gate": False}, "estimate needs a gate; this guard has gate=False"),
    ],
)
def test_estimates_that_cannot_be_meant_are_refused(options, said):
    with pytest.raises(mulligan.SettingError) as caught:
        mulligan.Guard("estimates", **options)
    assert str(caught.value) == said


def test_what_was_spent_is_settled_though_nobody_reads_headers(place):
    guard(place).call(lambda _words: Answer(), 1)
    unread = guard(place, observe=None)
    for _ in range(5):
        unread.call(lambda _words: Answer(spent=100), 6)
    with pytest.raises(mulligan.LimitReached, match=r"^api: 500 of 1000 tokens left"):
        unread.call(lambda _words: Answer(), 6)

"""Whether a text reads like a failed run or like a text about failures, by all of its words."""

from __future__ import annotations

import math
import time
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output import failure_words
from mulligan.classify.output.failure_score import (
    READS_FAILED,
    READS_HARMLESS,
    failure_score,
    weigh,
    word_counts,
)
from mulligan.classify.output.shown import shown
from mulligan.config.packs import find_packs
from mulligan.core.failure import Kind
from mulligan.core.hint import Confidence

PACKS = load_packs(find_packs(environ={})).packs
NOW = 1_783_339_200.0  # 2026-07-06 12:00 UTC

FAILED = """\
Run the acme reviewer on pull request 12
Loaded 14 files, 3 of them changed
acme-review: model call failed, attempt 3 of 3
acme-review: request to https://api.acme.example/v1/messages answered 429
acme-review: the provider has throttled this key, try again in 90 seconds
acme-review: no result was written for this run
Error: Process completed with exit code 1.
"""
HARMLESS = """\
## Summary

I changed how the client handles rate limits:

- `src/retry.ts` now reads the `retry-after` header and waits for it, with a fallback of 30 seconds
- the banner "You've hit your limit" is matched by a regex, and the tests cover both wordings
- docs: the README says what happens when the quota is exceeded

All 42 tests pass. The error message for a 429 is shown once instead of three times, and
the commit is ready for review.
"""


def read(text, exit_code=None):
    return read_output(text, packs=PACKS, now=NOW, zone=UTC, exit_code=exit_code)


def test_a_failed_run_scores_above_a_text_about_failures():
    assert failure_score(FAILED).value >= READS_FAILED
    assert failure_score(HARMLESS).value <= READS_HARMLESS


def test_a_score_names_the_words_that_decided():
    words = failure_score(HARMLESS).words
    assert 1 <= len(words) <= 3
    assert all(word in HARMLESS.lower() for word in words[0].split())


def test_a_text_without_known_words_scores_nothing():
    assert failure_score("").value == 0
    assert failure_score("\n \n").words == ()


def test_fewer_words_count_for_less():
    one_line = failure_score("Error: API request failed, limit reached")
    assert 0 < one_line.value < failure_score(FAILED).value


@given(st.text(max_size=400))
def test_every_text_has_a_finite_score(text):
    assert math.isfinite(failure_score(text).value)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 99), min_size=1))
def test_a_score_lies_within_the_largest_weights(counts):
    value, shares = weigh(counts, dict.fromkeys("abcd", 3.0), bias=0.0)
    assert 0 < value <= 3.0 * math.sqrt(len(counts))
    assert set(shares) == set(counts)


def test_words_are_counted_with_their_neighbours_and_the_ends_of_lines():
    counts = word_counts("HTTP 429 at 12:30\n  busy")
    assert counts["429"] == 1  # three digits may be a status
    assert counts["0"] == 2  # other numbers are all alike
    assert counts["^_http"] == 1
    assert counts["^>_busy"] == 1  # indented
    assert counts["l:busy_$"] == 1  # among the last lines


def test_only_the_last_lines_count():
    assert "first" not in word_counts("first\n" + "x\n" * 80)
    assert "l:first" not in word_counts("first\none\ntwo\nthree")


def test_every_word_has_one_weight():
    for table in (failure_words.WORDS, failure_words.LAST_WORDS):
        words = [word for line in table.values() for word in line.split()]
        assert len(words) == len(set(words))
        assert 0 not in table


def test_a_failed_run_is_read_without_its_exit_code():
    told = read(FAILED)
    assert told.failure.kind is Kind.RATE_LIMIT
    assert told.reset.seconds == 90


def test_a_text_about_failures_is_not_a_failure():
    quoted = HARMLESS + "\nError: You've hit your limit · resets 9pm\n"
    assert read(HARMLESS).failure is None
    told = read(quoted)
    assert told.failure is None
    assert told.because.startswith("reads like a text about failures (")


def test_the_exit_code_is_never_overruled():
    assert read(HARMLESS + "\nError: rate limit exceeded\n", exit_code=1).failure is not None
    assert read(FAILED, exit_code=0).confidence is Confidence.HIGH


WORK = """\
Aider v0.86.2
Main model: acme/large with diff edit format

I will add the retry to the client, and a test for the limit.

client.py
```python
<<<<<<< SEARCH
def send(request):
    return post(request)
=======
def send(request):
    return with_retry(post, request)
>>>>>>> REPLACE
```

Applied edit to client.py
Commit 3e9f2c1 feat: retry a request when the rate limit is reached
"""


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (
            "litellm.RateLimitError: AcmeException - Rate limit reached, try again in 2s",
            "rate_limit",
        ),
        ("litellm.AuthenticationError: AcmeException - Incorrect API key provided", "auth"),
        ("litellm.BadRequestError: LLM Provider NOT provided. Pass in the LLM provider.", "client"),
        ("Model acme/large has hit a token limit!", "context_length"),
        ("Empty response received from LLM. Check your provider account?", "bad_answer"),
    ],
)
def test_work_above_a_failure_does_not_hide_it_from_exit_code_0(end, kind):
    told = read_output(
        f"{WORK}\n{end}\n", packs=PACKS, now=NOW, zone=UTC, agent="aider", exit_code=0
    )
    assert told.failure is not None
    assert told.failure.kind == kind


def test_a_banner_with_nothing_below_it_ends_an_answer():
    work = HARMLESS.replace("All 42 tests pass. ", "Now the tests: ")
    told = read(f"{work}\nYou've hit your limit · resets 3pm (UTC)\n")
    assert told.failure.kind is Kind.QUOTA
    assert told.is_last_word
    below = read(f"You've hit your limit · resets 3pm (UTC)\n\n{work}")
    assert below.failure is None


@pytest.mark.parametrize(
    "end",
    [
        "[launcher] acme exited with code 1",
        "##[error]Process completed with exit code 1.",
        "lane 3 FAILED (exit 2)",
    ],
)
def test_an_exit_code_in_the_text_tells_that_the_run_failed(end):
    text = "You've hit your session limit · resets 3pm (UTC)\n[launcher] starting acme again now\n"
    told = read(f"{text}the launcher has looked at what acme left behind for it\n{end}\n")
    assert told.failure.kind is Kind.QUOTA
    assert told.reset.seconds == 3 * 3600
    told = read(
        f"{text}It gives up with exit code 2, as the page about the launcher says at length.\n"
    )
    assert told.failure is None
    ended = end.replace("1", "0").replace("2", "0")
    assert read(f"{text}the launcher has looked at what it left behind\n{ended}\n").failure is None


def test_a_report_titled_as_a_failure_is_one():
    body = (
        "**Workflow:** nightly\n\n> [!WARNING]\n> **Engine Rate Limited (HTTP 429)**: the engine "
        "hit provider limits and could not complete this run.\n\nThis signal was detected from "
        "runtime logs and from what the engine has sent.\n\n**What to do next**\n"
        "- Retry the workflow after a short delay; if this keeps happening, run fewer of them.\n"
    )
    assert read(f"### Workflow Failure\n\n{body}").failure.kind is Kind.RATE_LIMIT


def test_the_time_of_a_score_grows_with_the_text_at_most():
    def took(text):
        begin = time.perf_counter()
        for _ in range(5):
            failure_score(text)
        return time.perf_counter() - begin

    short, long = ("the limit was reached again\n" * count for count in (1_000, 20_000))
    took(short)
    assert took(long) < 60 * took(short)


def test_many_lists_of_statuses_take_no_longer_than_their_lines():
    def took(count):
        names = (
            f"{one:x}".translate(str.maketrans("0123456789", "ghijklmnop")) for one in range(count)
        )
        lines = [f"{name} 417" for name in names]
        begin = time.perf_counter()
        assert len(shown(lines)) == count
        return time.perf_counter() - begin

    took(100)
    assert took(16_000) < 60 * took(2_000)


def test_the_table_stays_small():
    file = Path(str(failure_words.__file__))
    assert file.stat().st_size < 48 * 1024

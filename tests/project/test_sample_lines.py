"""The sample lines in the tables of docs/ are what the code says, word for word."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Kind
from mulligan.core.admission import Admitted, Hold
from mulligan.testing import LoadedDice, Scripted, VirtualClock, status_error

DOCS = Path(__file__).parents[2] / "docs"


NONE = mulligan.Tokens(capacity=0, floor=0)


def fetch(outcomes):
    return outcomes()


def send(outcomes):
    return outcomes()


class Gate:
    """An admission that holds the first who asks."""

    is_open = False

    def enter(self, attempt: int, *, now: float, wall: float) -> Admitted | Hold:
        if self.is_open:
            return Admitted(None)
        self.is_open = True
        return Hold(2.0, "two of two are at work")

    def leave(self, *_: object, **__: object) -> None: ...


def cells(page: str, heading: str) -> list[list[str]]:
    """The rows of all tables under a heading, without the heads."""
    words = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    part = re.split(r"^## ", words, flags=re.MULTILINE)
    chosen = next(each for each in part if each.startswith(heading))
    rows = [line.strip("|").split("|") for line in chosen.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set(row[0]) <= {"-"}]


def quoted(page: str, heading: str, beginning: str) -> set[str]:
    """Everything in backticks in these tables that begins like this."""
    found = {
        each
        for row in cells(page, heading)
        for cell in row
        for each in re.findall("`([^`]+)`", cell)
    }
    return {each for each in found if each.startswith(beginning)}


def lines_of(virtual_clock, caplog):
    """Notes and log lines of calls that end in every way there is."""
    log = mulligan.LogListener(successes=True)
    # Each call alone: what one of them did to the target is no matter for the next.
    alone: Any = {"breaker": False, "gate": False, "tokens": False}
    read = mulligan.Guard("acme", effects="read", listeners=[log], **alone)
    unsafe = mulligan.Guard("mail", listeners=[log], **alone)
    hour, day = ({"retry-after": wait} for wait in ("3600", "86400"))

    def stream():
        yield 1
        yield 2
        raise ConnectionResetError("lost")

    def in_task(**bounds):
        with mulligan.task(**bounds):
            read.call(fetch, Scripted(status_error(500)))

    limited = status_error(429, "slow down", headers={"retry-after": "7"})
    looked = mulligan.Guard("acme", listeners=[log], verify=lambda _: mulligan.NOT_APPLIED, **alone)
    gated = mulligan.Guard("acme", listeners=[log], admissions=[Gate()], **alone)
    shared = mulligan.Guard("acme", effects="read", listeners=[log])
    poor = mulligan.Guard("poor", effects="read", listeners=[log], tokens=NONE, when_open="fail")
    calls = [
        lambda: read.call(fetch, Scripted(status_error(429, headers=hour))),  # at midnight
        lambda: read.call(fetch, Scripted("well")),
        lambda: looked.call(fetch, Scripted(TimeoutError("no reply"), "well")),
        lambda: gated.call(fetch, Scripted("well")),
        lambda: read.call(fetch, Scripted(ConnectionResetError("reset by peer"), limited, "well")),
        lambda: read.call(fetch, Scripted(status_error(429), status_error(429), "well")),
        lambda: read.call(fetch, Scripted(status_error(401))),
        lambda: read.call(fetch, Scripted(status_error(503))),
        lambda: in_task(deadline=2),
        lambda: in_task(budget=3),
        lambda: read.call(fetch, Scripted(status_error(429, headers=day))),
        lambda: unsafe.call(send, Scripted(TimeoutError("no reply"))),
        lambda: list(read.stream(stream)),
        lambda: poor.call(fetch, Scripted(status_error(503))),
        lambda: shared.call(fetch, Scripted(limited, "well")),
        lambda: shared.call(fetch, Scripted(status_error(503))),
        lambda: virtual_clock.advance(60),
        lambda: shared.call(fetch, Scripted("well")),
    ]
    notes = set()
    with caplog.at_level(logging.DEBUG, logger="mulligan"):
        for call in calls:
            try:
                call()
            except Exception as error:  # noqa: BLE001 -- every ending there is
                notes.update(error.__notes__)
    return notes, {record.message for record in caplog.records}


def test_every_note_on_the_page_is_one_that_is_written(virtual_clock, caplog):
    notes, _ = lines_of(virtual_clock, caplog)
    shown = quoted("retry", "What it reports", "mulligan: ")
    assert len(shown) == 9
    assert shown <= notes


def test_every_log_line_on_the_page_is_one_that_is_written(virtual_clock, caplog):
    _, lines = lines_of(virtual_clock, caplog)
    shown = quoted("telemetry", "What it reports", "acme: ")
    assert len(shown) == 11
    assert shown <= lines


def test_the_page_names_every_ending():
    shown = {row[0].strip("`") for row in cells("retry", "What it reports")}
    assert set(mulligan.Ending) <= shown


def test_every_refusal_on_the_page_is_one_that_is_raised():
    rows = [row for row in cells("retry", "What it reports") if row[0].startswith("`retry(")]
    assert len(rows) == 5
    for written, error, *_ in rows:
        with pytest.raises(mulligan.SettingError) as caught:
            eval(written.strip("`"), {"retry": mulligan.retry})  # noqa: S307 -- our own page
        assert str(caught.value) == error.strip("`")


def test_the_page_lists_every_option_of_retry():
    from mulligan.api.options import OPTIONS

    shown = {name for row in cells("retry", "Defaults") for name in re.findall(r"`(\w+)`", row[0])}
    assert shown == OPTIONS


def test_the_page_lists_every_kind_with_its_family_and_its_view():
    shown = {row[0].strip("`"): (row[1], row[2]) for row in cells("classification", "What it does")}
    shown.pop("kind")
    assert shown == {str(kind): (str(kind.family), str(kind.retryability)) for kind in Kind}


def test_loaded_dice_and_a_clock_that_stands_still_say_what_the_page_says():
    shown = " ".join(cell for row in cells("testing", "What it reports") for cell in row)
    with pytest.raises(mulligan.SettingError) as caught:
        LoadedDice(1.5)
    assert str(caught.value) in shown

    async def main():
        await VirtualClock(autojump=False).asleep(1)

    with pytest.raises(RuntimeError) as stuck:
        VirtualClock().run(main())
    assert str(stuck.value) in shown

"""The status line, on a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
import time
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.agents.adapter import Launch, OutputNote
from mulligan.run.attempt.output import AttemptFacts
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunMade
from mulligan.run.journal.state import state_of
from mulligan.run.process.stop import Stop
from mulligan.run.show.standard_streams import StandardStreams, can_draw
from mulligan.run.show.status_line import StatusLine, fitted, ticking

MADE = RunMade(1000.0, "claude", "claude -p hi", "/src", "host", 0, "", {}, [])


class Terminal:
    """A pseudo-terminal with a run shown on it, and what stands on its screen."""

    def __init__(self, columns: int = 80, *, is_coloured: bool = False) -> None:
        self.master, self.slave = os.openpty()
        settings = termios.tcgetattr(self.slave)
        settings[1] &= ~termios.OPOST  # what was written is what is read
        termios.tcsetattr(self.slave, termios.TCSANOW, settings)
        os.set_blocking(self.master, False)
        self.resize(columns)
        self.now, self.stop, self.written = 1000.0, Stop(), b""
        self.streams = StandardStreams(self.stop, self.slave, self.slave)
        before = state_of([MADE])
        assert before is not None
        self.status = StatusLine(
            "k3fqzz",
            "claude",
            streams=self.streams,
            before=before,
            is_coloured=is_coloured,
            now=lambda: self.now,
        )

    def resize(self, columns: int) -> None:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, size)

    def later(self, seconds: float = 1.0) -> None:
        """Time passes, and the line is drawn if this is a moment for it."""
        self.now += seconds
        self.status.tick()

    def read(self) -> bytes:
        try:
            while chunk := os.read(self.master, 65536):
                self.written += chunk
        except BlockingIOError:
            pass
        return self.written

    @property
    def rows(self) -> list[str]:
        return screen(self.read().decode())

    def close(self) -> None:
        self.status.close()
        self.stop.close()
        os.close(self.master)
        os.close(self.slave)


def screen(written: str) -> list[str]:
    """What stands on a screen to which this was written: as much of a terminal as is used."""
    rows, at, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|[^\x1b]", written):
        if part == "\n":
            at, column = at + 1, 0
            rows += [""] * (at + 1 - len(rows))
        elif part == "\r":
            column = 0
        elif part == "\x1b[J":
            rows = [*rows[:at], rows[at][:column]]
        elif not part.startswith("\x1b"):
            rows[at] = rows[at][:column].ljust(column) + part + rows[at][column + 1 :]
            column += 1
    return [row.rstrip() for row in rows]


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


def begun(attempt=1, at=1000.0, how="start"):
    return AttemptBegun(at, attempt, how, "", "")


def test_what_ends_at_once_shows_no_line(terminal):
    terminal.status.step(begun())
    terminal.later(0.3)
    terminal.status.output("stdout", b"hello\n")
    assert terminal.rows == ["hello", ""]


def test_the_line_stands_under_the_text_and_says_attempt_time_and_cost(terminal):
    terminal.status.step(begun())
    terminal.status.output("stdout", b"hello\n")
    facts = AttemptFacts(1, Launch(("claude",)))
    facts.add(OutputNote(cost=0.12, tokens=12_345))
    terminal.status.noted(OutputNote(), facts)
    terminal.later(42)
    assert terminal.rows == ["hello", "claude runs 0:42 · attempt 1 · $0.12 · 12k tokens"]


def test_text_replaces_the_line_and_the_line_comes_back_below(terminal):
    terminal.status.step(begun())
    terminal.later()
    terminal.status.output("stdout", b"one\ntwo\n")
    assert terminal.rows == ["one", "two", ""]
    terminal.later()
    assert terminal.rows == ["one", "two", "claude runs 0:02 · attempt 1"]


def test_half_a_line_of_text_is_left_alone(terminal):
    terminal.status.step(begun())
    terminal.status.output("stdout", b"working")
    terminal.later(60)
    terminal.status.output("stdout", b"...")
    terminal.later(60)
    assert terminal.rows == ["working..."]


def test_a_line_of_ours_never_continues_one_of_the_program(terminal):
    terminal.status.step(begun())
    terminal.status.output("stderr", b"no newline")
    terminal.status.step(AttemptEnd(1001.0, 1, 1.0, kind="network", message="reset", then="again"))
    assert terminal.rows[0] == "no newline"
    assert terminal.rows[1].startswith("mulligan: ")


def test_waiting_counts_down_and_says_that_it_can_be_interrupted():
    terminal = Terminal(120)
    terminal.status.step(begun())
    terminal.status.step(
        AttemptEnd(
            1000.0, 1, 1.0, kind="quota", then="again", until=8000.0, cost=0.5, reset_at=8000.0
        )
    )
    terminal.status.waiting(8000.0, 7000.0)
    terminal.later(10)
    last = terminal.rows[-1]
    terminal.close()
    assert last.startswith("claude waits 1:56:30 · until ")
    assert last.endswith(" · for attempt 2 · $0.50 · Ctrl-C is safe: mulligan resume k3fqzz")


@pytest.mark.real
def test_a_run_that_is_taken_up_while_it_waits_counts_down_by_itself(eventually):
    terminal = Terminal(120)
    terminal.now = 1010.0
    terminal.status.waiting(8000.0, 6990.0)
    is_drawn = eventually(lambda: terminal.rows[-1].startswith("claude waits 1:56:30 · until "))
    first = terminal.rows[0]
    terminal.close()
    assert is_drawn
    assert " claude waits until " in first


def test_text_that_goes_into_a_file_leaves_the_line_alone():
    terminal = Terminal()
    reader, writer = os.pipe()
    terminal.status._streams = StandardStreams(terminal.stop, writer, terminal.slave)
    terminal.status.step(begun())
    terminal.later()
    terminal.status.output("stdout", b"half a line")
    terminal.later()
    rows, filed = terminal.rows, os.read(reader, 100)
    terminal.close()
    os.close(reader)
    os.close(writer)
    assert (rows, filed) == (["claude runs 0:02 · attempt 1"], b"half a line")


def test_its_own_retries_are_a_state_of_their_own(terminal):
    terminal.status.step(begun())
    facts = AttemptFacts(1, Launch(("claude",)))
    facts.add(OutputNote(is_retry=True))
    terminal.status.noted(OutputNote(is_retry=True), facts)
    terminal.later(5)
    assert terminal.rows == ["claude retries by itself 0:05 · attempt 1 · its own retry 1"]


@pytest.mark.parametrize("columns", [1, 2, 10, 20, 40, 80, 200])
def test_the_line_never_reaches_the_last_column(columns):
    terminal = Terminal(columns)
    terminal.status.step(begun())
    terminal.later(90)
    row = terminal.rows[-1]
    terminal.close()
    assert len(row) <= max(1, columns - 1)


def test_a_narrower_terminal_gets_a_shorter_line(terminal):
    terminal.status.step(begun())
    terminal.later()
    terminal.resize(20)
    terminal.later()
    assert terminal.rows == ["claude runs 0:02"]


def test_a_program_that_moves_the_cursor_has_the_terminal_to_itself(terminal):
    terminal.status.step(begun())
    terminal.status.output("stdout", b"\x1b[2Aup\n")
    terminal.later(60)
    assert b"claude" not in terminal.read()
    terminal.status.step(begun(2, how="resume"))  # the next attempt is another program
    terminal.later(60)
    assert terminal.rows[-1].startswith("claude runs")


def test_colours_of_the_program_do_not_hide_the_line_even_if_they_come_in_pieces(terminal):
    terminal.status.step(begun())
    for piece in (b"\x1b[3", b"1mred\n", b"\x1b", b"[0m"):
        terminal.status.output("stdout", piece)
    terminal.later(60)
    assert terminal.rows[-1].startswith("claude runs")


def test_nothing_is_left_of_the_line_when_it_is_over(terminal):
    terminal.status.step(begun())
    terminal.later()
    terminal.status.close()
    assert terminal.rows == [""]


def test_without_colour_nothing_is_painted(terminal):
    terminal.status.step(begun())
    terminal.later()
    terminal.status.step(AttemptEnd(1001.0, 1, 1.0, kind="network", message="reset", then="again"))
    assert re.findall(rb"\x1b\[[0-9;]*m", terminal.read()) == []


def test_with_colour_it_says_the_same():
    plain, painted = Terminal(), Terminal(is_coloured=True)
    for terminal in (plain, painted):
        terminal.status.step(begun())
        terminal.later()
        terminal.status.step(
            AttemptEnd(1001.0, 1, 1.0, kind="network", message="lost", then="again")
        )
    assert plain.rows == painted.rows
    plain.close()
    painted.close()


def test_what_a_program_left_switched_on_is_switched_off(terminal):
    terminal.status.step(begun())
    terminal.status.output("stdout", b"\x1b[?25l\x1b[31mgone")
    terminal.status.step(AttemptEnd(1001.0, 1, 1.0, signal=9, kind="server", then="again"))
    assert b"\x1b[?25h" in terminal.read()


chunks = st.lists(
    st.text(st.sampled_from("ab \n"), max_size=6).map(str.encode) | st.just(b"\n"), max_size=12
)


@given(pieces=chunks)
def test_whatever_is_printed_stands_there_as_without_us(pieces):
    terminal = Terminal()
    terminal.status.step(begun())
    for piece in pieces:
        terminal.status.output("stdout", piece)
        terminal.later(5)
    terminal.status.close()
    rows = terminal.rows
    terminal.close()
    assert rows == screen(b"".join(pieces).decode())


def test_a_dumb_terminal_a_pipe_and_a_missing_name_get_plain_lines():
    master, slave = os.openpty()
    reader, writer = os.pipe()
    answers = [
        can_draw(slave, {"TERM": "xterm"}),
        can_draw(slave, {"TERM": "dumb"}),
        can_draw(slave, {}),
        can_draw(writer, {"TERM": "xterm"}),
    ]
    for descriptor in (master, slave, reader, writer):
        os.close(descriptor)
    assert answers == [True, False, False, False]


@pytest.mark.real
def test_the_line_ticks_by_itself():
    terminal = Terminal()
    terminal.now = 2000.0
    terminal.status.step(begun(at=1990.0))
    ends_at = time.monotonic() + 5
    while b"claude runs 0:10" not in terminal.read() and time.monotonic() < ends_at:
        time.sleep(0.02)
    assert b"claude runs 0:10" in terminal.read()
    terminal.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (42.9, "0:42"),
        (3725, "1:02:05"),
        (86_400 * 2 + 60, "2d 00:01:00"),
        (inf, "forever"),
    ],
)
def test_a_ticking_time_keeps_its_shape(seconds, text):
    assert ticking(seconds) == text


@given(
    parts=st.lists(st.text("abc ", min_size=1, max_size=30), min_size=1), width=st.integers(0, 99)
)
def test_a_fitted_line_begins_with_the_most_important(parts, width):
    line = fitted(parts, width)
    assert len(line) <= max(1, width - 1)
    assert parts[0].startswith(line) or line.startswith(parts[0])

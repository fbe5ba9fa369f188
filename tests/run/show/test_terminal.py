"""A terminal is left as it was found, with no byte more than that takes."""

from __future__ import annotations

import os
import pty
import select
import termios
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.show.terminal import Screen, Terminal


def undo_of(*chunks: bytes) -> bytes:
    screen = Screen()
    for chunk in chunks:
        screen.saw(chunk)
    return screen.undo()


LEFT = {
    "a colour": (b"\x1b[31mred", b"\x1b[0m"),
    "a colour whose number ends with zeros": (b"\x1b[38;5;0m", b"\x1b[0m"),
    "a hidden cursor": (b"\x1b[?25l", b"\x1b[?25h"),
    "lines that do not wrap": (b"\x1b[?7l", b"\x1b[?7h"),
    "the other screen": (b"\x1b[?1049h", b"\x1b[?1049l"),
    "bracketed paste": (b"\x1b[?2004h", b"\x1b[?2004l"),
    "held-back drawing": (b"\x1b[?2026h", b"\x1b[?2026l"),
    "a mouse that types": (b"\x1b[?1000;1006h", b"\x1b[?1000l\x1b[?1006l"),
    "another keypad": (b"\x1b=", b"\x1b>"),
    "line drawing letters": (b"\x1b(0qqq", b"\x1b(B"),
    "shifted letters": (b"\x0eabc", b"\x0f"),
    "keys reported in another way": (b"\x1b[>1u", b"\x1b[<99u"),
    "a part that scrolls": (b"\x1b[1;10r", b"\x1b7\x1b[r\x1b8"),
    "a bar for a cursor": (b"\x1b[6 q", b"\x1b[0 q"),
    "a sequence that was cut": (b"text\x1b[3", b"\x18"),
    "an escape alone": (b"text\x1b", b"\x18"),
    "a title that does not end": (b"\x1b]0;title", b"\x1b\\"),
    "a picture that does not end": (b"\x1bP" + b"q" * 200_000, b"\x1b\\"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_program_left_on_is_switched_off(name):
    sent, undo = LEFT[name]
    assert undo_of(sent) == undo


@pytest.mark.parametrize("name", LEFT)
def test_it_is_understood_however_it_was_cut(name):
    sent, undo = LEFT[name]
    sent = sent[:64]
    for at in range(len(sent)):
        assert undo_of(sent[:at], sent[at:]) == undo


@pytest.mark.parametrize("name", LEFT)
def test_it_is_not_switched_off_twice(name):
    sent, undo = LEFT[name]
    assert undo_of(sent, undo) == b""


@pytest.mark.parametrize(
    "tidy",
    [
        b"plain text\n",
        "grüße, 漢字\n".encode(),
        b"\x1b[1;31mred\x1b[0m and \x1b[32mgreen\x1b[m",
        b"\x1b[?25lspinner\x1b[?25h",
        b"\x1b[?1049h\x1b[?1000h\x1b[?1000l\x1b[?1049l",
        b"\x1b]0;a title\x07text",
        b"\x1b]8;;https://example.test\x1b\\link\x1b]8;;\x1b\\",
        b"\x1b[31m\x1b[?25l\x1bc",
        b"\x1b[2J\x1b[H\x1b[12;3H\x1b[K\x1b[6n",
    ],
)
def test_a_tidy_program_needs_nothing(tidy):
    assert undo_of(tidy) == b""


def test_the_other_screen_is_left_last():
    assert undo_of(b"\x1b[?1049h\x1b[?25l\x1b[31m") == b"\x1b[?25h\x1b[0m\x1b[?1049l"


@given(st.lists(st.binary(max_size=40) | st.sampled_from([sent for sent, _ in LEFT.values()])))
def test_whatever_passes_nothing_is_left_on_after_the_undoing(chunks):
    assert undo_of(*chunks, undo_of(*chunks)) == b""


@given(st.binary(max_size=200), st.integers(0, 200))
def test_where_a_chunk_ends_makes_no_difference(data, at):
    assert undo_of(data) == undo_of(data[:at], data[at:])


@pytest.mark.parametrize("unit", [b"\x1b]", b"\x1b[", b"\x1b[1;", b"\x1bP\x1b", b"\x1b]a\x1b["])
def test_hostile_sequences_take_time_in_proportion_to_their_length(unit):
    def seconds(size: int) -> float:
        chunk = (unit * size)[:size]
        best = float("inf")
        for _ in range(3):
            screen, began = Screen(), time.process_time()
            screen.saw(chunk)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(320_000) < 60 * max(seconds(20_000), 1e-5)  # 16 times; 256 if it were squared


def test_where_the_cursor_stands_is_known():
    screen, stands = Screen(), []
    for chunk in (b"", b"text", b"", b"more\n"):
        screen.saw(chunk)
        stands.append(screen.is_mid_line)
    assert stands == [False, True, True, False]


def test_nothing_is_written_where_there_is_no_terminal(tmp_path):
    with (tmp_path / "out").open("wb") as file:
        terminal = Terminal(file.fileno())
        terminal.passed(file.fileno(), b"\x1b[31m\x1b[?25l")
        terminal.restore()
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.real
def test_a_terminal_gets_back_its_cursor_and_nothing_more():
    inside, outside = pty.openpty()
    terminal = Terminal(outside)
    terminal.passed(outside, b"\x1b[?25l")
    terminal.restore()
    terminal.restore()
    assert select.select([inside], [], [], 1)[0]
    assert os.read(inside, 100) == b"\x1b[?25h"
    assert not select.select([inside], [], [], 0)[0]
    os.close(inside)
    terminal.restore()
    os.close(outside)


@pytest.mark.real
def test_a_terminal_that_takes_nothing_does_not_hold_us_up(within):
    inside, outside = pty.openpty()
    terminal = Terminal(outside)
    terminal.passed(outside, b"\x1b[?25l")
    termios.tcflow(outside, termios.TCOOFF)  # Ctrl-S
    with within(1):
        terminal.restore()
    termios.tcflow(outside, termios.TCOON)
    os.close(outside)
    os.close(inside)

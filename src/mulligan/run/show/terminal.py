"""Restores the user's terminal to how it was before a program changed it.

A killed program cannot undo what it changed: a hidden cursor, the alternate screen, mouse
reporting. Its output is passed on unchanged and scanned for such changes, so that only these are
undone, and nothing is written to a file or a pipe.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import termios
from typing import Any

__all__ = ("Screen", "Terminal")

_ESCAPE = re.compile(
    rb"\x1b\[(?P<private>[?>=<]?)(?P<numbers>[0-9;:]*)(?P<final>[ -/]*[@-~])"  # CSI
    rb"|\x1b[]PX^_][^\x07\x1b\x18\x1a]*(?:\x07|\x1b\\|[\x18\x1a])"  # a string: OSC, DCS and others
    rb"|\x1b(?P<short>[()][0-9A-Z]|[=>c])"
    rb"|(?P<shift>[\x0e\x0f])"
)
_MARKS = (b"\x1b", b"\x0e", b"\x0f")
# The beginning of a sequence at the end of a chunk: its rest comes with the next one.
_CUT = re.compile(rb"\x1b(?:\[[0-9;:?>=< -/]{,64}|[]PX^_][^\x07\x1b\x18\x1a]*\x1b?|[()])?\Z")

# Modes by number (DEC private modes). Two are on by default; the others are off.
_ON = {b"7": b"\x1b[?7h", b"25": b"\x1b[?25h"}  # lines wrap, the cursor shows
_OFF = {
    number: b"\x1b[?" + number + b"l"
    for number in (
        *(b"1", b"5", b"6", b"66"),  # cursor keys, inverse, origin, keypad
        *(b"9", b"1000", b"1001", b"1002", b"1003", b"1004", b"1005", b"1006", b"1015", b"1016"),
        *(b"2004", b"2026", b"2031"),  # bracketed paste, held-back drawing, colour reports
    )
}
_STRINGS = (b"]", b"P", b"X", b"^", b"_")
_OTHER_SCREEN = {number: b"\x1b[?" + number + b"l" for number in (b"47", b"1047", b"1049")}
# Settings that a sequence without numbers, or with zeros, puts back.
_SETTINGS = {
    b"m": b"\x1b[0m",  # colours: one reset too many does no harm
    b"r": b"\x1b7\x1b[r\x1b8",  # the part that scrolls; setting it moves the cursor
    b" q": b"\x1b[0 q",  # the shape of the cursor
}


class Screen:
    """Tracks which terminal modes the output has left switched on."""

    def __init__(self) -> None:
        self._left: dict[bytes, bytes] = {}
        self._open = b""
        #: Whether the cursor stands behind something, so that a line of ours needs a new one.
        self.is_mid_line = False

    def saw(self, chunk: bytes) -> None:
        """Scan a chunk of output."""
        if chunk:
            self.is_mid_line = not chunk.endswith((b"\n", b"\r"))
        if not self._open and not any(mark in chunk for mark in _MARKS):
            return
        text = self._open + chunk
        for found in _ESCAPE.finditer(text):
            self._follow(found)
        cut = _CUT.search(text)
        self._open = cut.group() if cut else b""
        if self._open[1:2] in _STRINGS:
            # A title or a picture: what it says does not matter, only that it goes on.
            self._open = self._open[:2] + (b"\x1b" if self._open.endswith(b"\x1b") else b"")

    def undo(self) -> bytes:
        """What puts everything back; empty if nothing is to be put back."""
        # ST ends a string, CAN any other sequence that was cut.
        cut = b"\x1b\\" if self._open[1:2] in _STRINGS else b"\x18" if self._open else b""
        # The other screen is left last: the rest may belong to it.
        names = sorted(self._left, key=lambda name: name in _OTHER_SCREEN)
        undone = cut + b"".join(self._left[name] for name in names)
        self._left, self._open = {}, b""
        return undone

    def _follow(self, found: re.Match[bytes]) -> None:
        if final := found["final"]:
            self._control(found["private"], found["numbers"], final)
        elif found["shift"]:
            self._note(b"shift", b"\x0f", is_on=found["shift"] == b"\x0e")
        elif short := found["short"]:
            if short == b"c":  # a full reset
                self._left.clear()
            elif short in {b"=", b">"}:
                self._note(b"keypad", b"\x1b>", is_on=short == b"=")
            else:  # which letters are drawn: ( and ) choose them for the two shifts
                side = short[:1]
                self._note(b"letters" + side, b"\x1b" + side + b"B", is_on=short[1:] != b"B")

    def _control(self, private: bytes, numbers: bytes, final: bytes) -> None:
        if not private and final in _SETTINGS:
            self._note(final, _SETTINGS[final], is_on=numbers.strip(b"0") != b"")
        elif private == b"?" and final in {b"h", b"l"}:
            for number in numbers.split(b";"):
                if number in _ON:
                    self._note(number, _ON[number], is_on=final == b"l")
                elif undo := _OFF.get(number) or _OTHER_SCREEN.get(number):
                    self._note(number, undo, is_on=final == b"h")
        elif private in {b">", b"<", b"="} and final == b"u":  # how keys are reported (kitty)
            self._note(b"keys", b"\x1b[<99u", is_on=private != b"<")

    def _note(self, name: bytes, undo: bytes, *, is_on: bool) -> None:
        if is_on:
            self._left[name] = undo
        else:
            self._left.pop(name, None)


class Terminal:
    """The terminal behind the descriptors to which a program's bytes go, if there is one."""

    def __init__(self, *descriptors: int) -> None:
        self._ttys = tuple(fd for fd in descriptors if os.isatty(fd))
        self._saved = self._settings()
        self._screen = Screen()

    @property
    def is_mid_line(self) -> bool:
        """Whether the cursor stands behind something that was passed on."""
        return self._screen.is_mid_line

    def passed(self, descriptor: int, chunk: bytes) -> None:
        """Follow what was written to `descriptor`."""
        if descriptor in self._ttys:
            self._screen.saw(chunk)

    def restore(self) -> None:
        """Put back what the program left changed. Never raises: the terminal may be gone."""
        with contextlib.suppress(OSError, termios.error):
            undo = self._screen.undo()
            if undo and _can_take(self._ttys[0]):
                os.write(self._ttys[0], undo)
            now = self._settings()
            # A background process is stopped for touching the settings.
            if now != self._saved and now and os.tcgetpgrp(self._ttys[0]) == os.getpgrp():
                termios.tcsetattr(self._ttys[0], termios.TCSANOW, self._saved)

    def _settings(self) -> list[Any]:
        with contextlib.suppress(OSError, termios.error):
            if self._ttys:
                return list(termios.tcgetattr(self._ttys[0]))
        return []


def _can_take(descriptor: int) -> bool:
    """Whether a few bytes can be written without waiting for a Ctrl-Q."""
    waiter = select.poll()
    waiter.register(descriptor, select.POLLOUT)
    return bool(waiter.poll(100))

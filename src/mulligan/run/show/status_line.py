"""A status line under the program's text.

The program's text has priority. The line is drawn only while the cursor is at the beginning of a
line, and removed before anything else is written. It is not drawn once the program moves the cursor
itself.

    first column  ·  erase to the end of the screen  ·  the line, cut to the width  ·  first column

The cursor waits at the first column: a terminal that is made narrower breaks the line below it, and
erasing downwards finds all of it without touching what stands above.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from math import isfinite
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, TypeVar

from ...core.duration import duration_text
from ..journal.entries import AttemptBegun, AttemptEnd, RunRescheduled
from .messages import clock, money, token_text
from .plain_view import PlainView

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..agents.adapter import OutputNote, Stream
    from ..attempt.output import AttemptFacts
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from .messages import StatusText
    from .standard_streams import StandardStreams

__all__ = ("TONES", "StatusLine", "fitted", "ticking")

# Seconds between redraws; pause of the program's text before the line comes back, against flicker;
# shortest run that gets a line.
_TICK, _PAUSE, _PATIENCE = 0.2, 0.15, 0.7

# Colours may come and go; everything else that begins with ESC may move the cursor.
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
_CUT = re.compile(rb"\x1b(?:\[[0-9;:]*)?\Z")

_ERASE, _DIM, _PLAIN = "\r\x1b[J", "\x1b[2m", "\x1b[0m"
TONES = {"plain": "\x1b[2m", "good": "\x1b[32m", "bad": "\x1b[31m", "wait": "\x1b[33m"}


class StatusLine(PlainView):
    """Shows a run on a terminal: lines for events, one status line for the current state.

    `before` is the state of the run when this process starts to drive it.
    """

    def __init__(
        self,
        id_: str,
        program: str,
        *,
        streams: StandardStreams,
        before: RunState,
        is_coloured: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(id_, program, streams=streams)
        self._is_coloured, self._now = is_coloured, now
        self._descriptor = streams.descriptors["stderr"]
        self._cost, self._tokens = before.cost, before.tokens
        self._made_at, self._shown_at = before.made.at, now()
        self._attempt, self._begun_at, self._until = before.attempts, 0.0, 0.0
        self._retries, self._facts = 0, (None, None)
        self._state = ""
        self._drawn = ""
        self._is_taken = False  # by the program, which moves the cursor itself
        self._cut = b""
        self._text_at = 0.0
        self._lock = RLock()
        self._done = Event()
        self._ticker = Thread(target=self._keep_ticking, name="status line", daemon=True)

    _facts: tuple[float | None, int | None]

    # What happens

    def step(self, step: JournalEntry) -> None:
        with self._lock:
            super().step(step)
            if isinstance(step, AttemptBegun):
                self._attempt, self._begun_at, self._retries = step.attempt, step.at, 0
                self._state, self._facts, self._is_taken = "running", (None, None), False
            elif isinstance(step, AttemptEnd):
                self._cost = _sum(self._cost, step.cost)
                self._tokens = _sum(self._tokens, step.tokens)
                self._state, self._facts = "", (None, None)
            elif isinstance(step, RunRescheduled):
                self._state = ""
        self._start_ticking()

    def output(self, stream: Stream, chunk: bytes) -> None:
        if not self._streams.is_ours(stream):
            super().output(stream, chunk)
            return
        with self._lock:
            self._erase()
            super().output(stream, chunk)
            self._text_at = self._now()
            self._follow(chunk)

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None:  # noqa: ARG002 -- the facts have it added up
        with self._lock:
            self._facts, self._retries = (facts.cost, facts.tokens), facts.retries

    def waiting(self, until: float, left: float) -> None:
        with self._lock:
            super().waiting(until, left)
            self._state, self._until = "waiting", until
        self._start_ticking()  # a resumed run that waits has no step before

    def over(self, state: RunState) -> None:
        self.close()
        super().over(state)

    def close(self) -> None:
        """Remove the line; nothing is drawn any more."""
        self._done.set()
        if self._ticker.is_alive():
            self._ticker.join()
        with self._lock:
            self._erase()
        super().close()

    # The line

    def _start_ticking(self) -> None:
        if not self._ticker.is_alive() and not self._done.is_set():
            self._ticker.start()

    def _keep_ticking(self) -> None:
        while not self._done.wait(_TICK):
            self.tick()

    def tick(self) -> None:
        """Draw the line, if it may be drawn now."""
        with self._lock:
            if self._may_draw():
                self._draw()

    def _may_draw(self) -> bool:
        if self._streams.is_mid_line or self._is_taken or not self._state:
            return False
        now = self._now()
        if 0 <= now - self._text_at < _PAUSE or 0 <= now - self._shown_at < _PATIENCE:
            return False
        with contextlib.suppress(OSError):
            # In the background the terminal belongs to another process.
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        return True

    def _draw(self) -> None:
        line = fitted(self.parts(), self._width())
        if line != self._drawn:
            ink, plain = (_DIM, _PLAIN) if self._is_coloured else ("", "")
            self._streams.draw(f"{_ERASE}{ink}{line}{plain}\r")
            self._drawn = line

    def _erase(self) -> None:
        if self._drawn:
            self._streams.draw(_ERASE)
            self._drawn = ""

    def _width(self) -> int:
        try:
            # A terminal whose size was not set says 0.
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    def parts(self) -> list[str]:
        """What the line says, the most important first."""
        now = self._now()
        cost, tokens = _sum(self._cost, self._facts[0]), _sum(self._tokens, self._facts[1])
        if self._state == "waiting":
            left = ticking(max(0.0, self._until - now))
            parts = [
                f"{self._program} waits {left}",
                f"until {clock(self._until, now)}",
                f"for attempt {self._attempt + 1}",
            ]
        else:
            is_retrying = self._retries > 0
            does = "retries by itself" if is_retrying else "runs"
            since = ticking(max(0.0, now - self._begun_at))
            parts = [f"{self._program} {does} {since}", f"attempt {self._attempt}"]
            if is_retrying:
                parts.append(f"its own retry {self._retries}")
        parts += [each for each in (money(cost), token_text(tokens)) if each]
        if now - self._made_at >= 60 and (self._attempt > 1 or self._state == "waiting"):
            parts.append(f"{ticking(now - self._made_at)} in all")
        if self._state == "waiting":
            parts.append(f"Ctrl-C is safe: mulligan resume {self._id}")
        return parts

    def _follow(self, chunk: bytes) -> None:
        """Detect from the program's output whether it moves the cursor."""
        if not self._cut and b"\x1b" not in chunk and b"\r" not in chunk:
            return
        rest = _COLOUR.sub(b"", self._cut + chunk)
        found = _CUT.search(rest)
        self._cut = found.group() if found else b""
        rest = rest[: len(rest) - len(self._cut)]
        self._is_taken = self._is_taken or b"\x1b" in rest
        # Colours behind the end of a line leave the cursor where it is.
        self._streams.is_mid_line = bool(rest or self._cut) and not rest.endswith(b"\n")

    def _say(self, said: list[StatusText], when: str = "") -> None:
        with self._lock:
            self._erase()
            super()._say(said, when)

    def _prefix(self, said: StatusText) -> str:
        plain = super()._prefix(said)
        return f"{TONES[said.tone]}{plain}{_PLAIN}" if self._is_coloured else plain


def fitted(parts: list[str], width: int) -> str:
    """As many of `parts` as fit into a line of `width` columns, the first of them in any case."""
    room = max(1, width - 1)  # a full line makes some terminals go to the next
    line = parts[0]
    for part in parts[1:]:
        if len(line) + len(part) + 3 > room:
            break
        line = f"{line} · {part}"
    return line[:room]


def ticking(seconds: float) -> str:
    """A duration that is looked at: ``0:42``, ``4:12:09``, ``2d 04:12:09``."""
    if not isfinite(seconds):
        return duration_text(seconds)
    whole = int(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d {hours:02}:{minutes:02}:{whole % 60:02}"
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


N = TypeVar("N", int, float)


def _sum(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other

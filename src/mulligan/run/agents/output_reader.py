"""Base class of output readers: turns a program's events into `OutputNote`s.

A program's output is untrusted: a line may be cut, doubled or several megabytes long. A line
without the expected shape is ignored; nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .adapter import OutputNote, OutputReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .adapter import Launch, Stream

__all__ = (
    "SESSION_ID",
    "Event",
    "EventReader",
    "contents",
    "mapping",
    "number",
    "parsed",
    "text",
    "total",
)

Event = Mapping[str, object]

# What is safe to pass to a program as a session id: it cannot be read as an option.
SESSION_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{7,63}")
# Longer blocks of pretty-printed JSON are not treated as events.
_LONGEST_BLOCK = 4_000_000
# Longest description of a tool call, in characters.
_LONGEST_CALL = 300


def mapping(found: object, *path: str) -> Event:
    """The object at the end of `path`; an empty one if there is none."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def text(found: object, *path: str) -> str:
    """The text at the end of `path`; empty if there is none."""
    value = mapping(found, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def number(found: object, *path: str) -> float:
    """The number at the end of `path`; 0 if there is none that can be counted."""
    value = mapping(found, *path[:-1]).get(path[-1])
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e15 else 0.0  # type: ignore[operator, arg-type]  # is_number


def total(found: object, *names: str) -> float:
    """The sum of the numbers called so."""
    return sum([number(found, name) for name in names])


def contents(event: Event, *path: str) -> Iterator[Event]:
    """The objects in a list at the end of `path`."""
    found = mapping(event, *path[:-1]).get(path[-1])
    return (
        each for each in (found if isinstance(found, list) else ()) if isinstance(each, Mapping)
    )


def parsed(line: bytes) -> tuple[list[Event] | None, str]:
    """The events in a line (None if it is not JSON, empty if broken), and the text left over.

    Claude 2.1.74 could put an event into the middle of another line. The event is complete; the
    text before it continues in the next line.
    """
    if line.lstrip()[:1] not in (b"{", b"["):
        return None, ""
    said = line.decode("utf-8", "replace").strip()
    found = _events(said)
    if found is not None:
        return found, ""
    at = said.rfind('{"type":"')
    inner = _events(said[at:]) if at > 0 else None
    if inner is not None:
        return inner, said[:at]
    return ([], "") if said.startswith(('{"', "[{")) else (None, "")


def _events(said: str) -> list[Event] | None:
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return None
    many = found if isinstance(found, list) else [found]
    return [event for event in many if isinstance(event, Mapping)]


class EventReader(OutputReader):
    """Reads one attempt of a program that prints events; a subclass knows what they mean.

    A subclass's `read` handles one event of stdout, `words` a line that is not an event; both
    report through the methods below, which build the note.
    """

    # What the program prints on stderr if the session to resume does not exist.
    lost: re.Pattern[str] | None = None
    # The key of the session's id, in a program that repeats it in its events.
    session_key = ""

    def __init__(self, launch: Launch) -> None:
        self._has_worked, self._named = False, ""
        self._is_translated = launch.is_translated
        self._cost: float | None = None
        self._tokens: int | None = None
        self._tools: dict[str, str] = {}
        self._has_events = False
        self._block: dict[Stream, bytearray] = {}
        self._half = ""
        self.is_broken = False
        # The fields of the note for the line that is being read.
        self._said: dict[str, Any] = {}

    def line(self, stream: Stream, line: bytes, /) -> OutputNote | None:
        self._said = {}
        if not self.skips(line):
            self._take(stream, line)
        return OutputNote(**self._said) if self._said else None

    def end(self) -> OutputNote | None:
        self._said = {}
        for stream in tuple(self._block):
            self._say(stream, bytes(self._block.pop(stream)))
        self.ended()
        return OutputNote(**self._said) if self._said else None

    # Overridden by subclasses.

    def read(self, event: Event) -> None:
        """Handle one event of the output."""

    def words(self, stream: Stream, line: str) -> None:
        """Handle a line that is not an event."""

    def ended(self) -> None:
        """Show what is left after the end of the output."""

    def skips(self, line: bytes) -> bool:  # noqa: ARG002 -- for subclasses
        """Whether a line is not worth parsing."""
        return False

    # Called by subclasses to report.

    def session(self, found: object) -> None:
        # Most events repeat it.
        if isinstance(found, str) and found != self._named and SESSION_ID.fullmatch(found):
            self._said["session"] = self._named = found

    def retry(self, quiet: float = 0.0, reason: str = "") -> None:
        """The program retries by itself after `quiet` seconds."""
        self._said |= {"is_retry": True, "reason": reason}
        self.silent(quiet)

    def silent(self, seconds: float) -> None:
        """The program announced that it will be silent for so many seconds."""
        if seconds > self._said.get("quiet", 0.0):
            self._said["quiet"] = seconds

    def futile(self) -> None:
        """The program repeats requests that cannot succeed, and would not stop by itself."""
        self._said["is_futile"] = True

    def worked(self) -> None:
        """The model used a tool or completed an answer. A partial answer does not count."""
        self._said["is_work"] = self._has_worked = True

    def tool_began(self, tool: str, name: str, arguments: object = None) -> None:
        """The tool call with the id `tool` is under way."""
        if tool and tool not in self._tools:
            self._tools[tool] = _described(name, arguments)
            self._said["pending"] = tuple(self._tools.values())

    def tool_ended(self, tool: str) -> None:
        if tool in self._tools:
            del self._tools[tool]
            self._said["pending"] = tuple(self._tools.values())

    def spent(self, *, cost: float | None = None, tokens: float | None = None) -> None:
        """Cost and tokens of the attempt so far; the totals never decrease."""
        before = (self._cost, self._tokens)
        if cost is not None:
            self._cost = max(cost, self._cost or 0.0)
        if tokens is not None:
            self._tokens = max(int(tokens), self._tokens or 0)
        if before != (self._cost, self._tokens):
            self._said |= {"cost": self._cost, "tokens": self._tokens}

    def also_spent(self, *, cost: float | None = None, tokens: float | None = None) -> None:
        """What a step has used, on top of what was used before."""
        self.spent(
            cost=None if cost is None else (self._cost or 0.0) + cost,
            tokens=None if tokens is None else (self._tokens or 0) + tokens,
        )

    def show(self, stream: Stream, text: str) -> None:
        """Show text to the user; has an effect only if we switched the output to structured."""
        if not self._is_translated or not text:
            return
        if not text.isascii():
            # JSON can contain lone surrogates, which cannot be encoded for a terminal.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._said.setdefault("shown", []).append((stream, text))

    # From lines to events.

    def _take(self, stream: Stream, line: bytes) -> None:
        if whole := self._gather(stream, line):
            line = whole
        elif stream in self._block:
            return
        events, half = parsed(line)
        if events is None and stream == "stdout" and self._half:
            events = _events(self._half + line.decode("utf-8", "replace").rstrip())
        if events is None:
            self._say(stream, line)
            return
        self.is_broken = self.is_broken or not events
        self._half = half
        for event in events:
            if stream == "stdout" and not self._has_events and isinstance(event.get("type"), str):
                self._has_events = self._said["is_event"] = True
            if self.session_key:
                self.session(event.get(self.session_key))
            self.read(event)

    def _say(self, stream: Stream, line: bytes) -> None:
        said = line.decode("utf-8", "replace")
        if stream == "stdout":
            self.show("stdout", said + "\n")
        elif self.lost is not None and not self._has_worked and self.lost.match(said):
            self._said["is_lost"] = True
        self.words(stream, said)

    def _gather(self, stream: Stream, line: bytes) -> bytes:
        """Collect a pretty-printed object up to its last line, which is not indented."""
        block = self._block.get(stream)
        bare = line.rstrip()
        if block is None:
            if bare in (b"{", b"["):
                self._block[stream] = bytearray(bare)
            return b""
        block += b"\n" + bare
        if bare in (b"}", b"]") or len(block) > _LONGEST_BLOCK:
            return bytes(self._block.pop(stream))
        return b""


def _described(name: str, arguments: object) -> str:
    """A short description of a tool call for a prompt: its command, else all its arguments."""
    command = mapping(arguments).get("command")
    if isinstance(command, list):  # an argv
        command = " ".join(word for word in command if isinstance(word, str))
    if not isinstance(command, str) or not command:
        command = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    name = name or "a tool"
    return f"{name}: {command[:_LONGEST_CALL]}" if command else name

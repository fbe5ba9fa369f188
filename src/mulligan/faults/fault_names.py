"""The catalogue of faults: names, options and help texts.

The menu is data: scripts are validated against it, `mulligan faults menu` prints it, and a test
uses every entry once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches

from ..core.duration import seconds
from ..errors import SettingError
from .grammar import pieces, quoted, unquoted
from .refusal_times import retry_after

__all__ = (
    "COMMON_OPTIONS",
    "LIMIT",
    "MENU",
    "OK",
    "REFUSAL_OPTIONS",
    "STATUSES",
    "Fault",
    "FaultType",
    "fault_type",
    "parse_fault",
)


def _anything(_: str) -> None:
    """Any text, unchecked: garbage in a header is a useful fault."""


def _when(text: str) -> None:
    try:
        retry_after(text, 0.0)
    except OverflowError:
        raise SettingError(f"needs a date before the year 10000; got {text!r}") from None


def _duration(text: str) -> None:
    _seconds(text, "the duration")


def _seconds(text: str, name: str) -> float:
    return seconds(float(text) if _NUMBER.fullmatch(text) else text, name=name)


def _matching(pattern: str, needs: str) -> Check:
    def check(text: str) -> None:
        if not re.fullmatch(pattern, text):
            raise SettingError(f"needs {needs}; got {text!r}")

    return check


_count = _matching(r"[0-9]{1,6}", "a whole number such as 3")
_status = _matching(r"[45][0-9]{2}", "a status from 400 to 599")
_yes = _matching("yes|no", "yes or no")


def _object(text: str) -> None:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SettingError(f"needs a JSON object; got {text!r}")


_STATUS = re.compile(r"[2-5][0-9]{2}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_HEADER = re.compile(r"header\.[A-Za-z0-9-]{1,64}")
# With another length or coding the client could not tell where the answer ends.
_FRAMING = ("header.content-length", "header.transfer-encoding")
_LEADING = re.compile(r"(delay|applied)=([^,]*)(?:,\s*|$)")

# Raises a SettingError for an invalid text.
Check = Callable[[str], None]

# Options of every entry.
COMMON_OPTIONS: dict[str, Check] = {"delay": _duration, "applied": _yes}
# Further options of every refusal.
REFUSAL_OPTIONS: dict[str, Check] = {
    "retry-after": _when,
    "retry-after-ms": _anything,
    "x-should-retry": _anything,
    "message": _anything,
    "code": _anything,
    "retriable": _yes,
}


@dataclass(frozen=True, slots=True)
class FaultType:
    """One entry of the menu."""

    name: str  # as scripts write it
    group: str  # its section in the printed menu
    help: str  # what the client sees, in a line
    own: dict[str, Check] = field(default_factory=dict)  # its own options, with their checks
    _: KW_ONLY
    positional: tuple[str, ...] = ()  # the options that may be given without a name, in order
    takes_rest: bool = False  # the last positional takes all the text up to the closing parenthesis
    reaches: bool = False  # whether a write has been applied when this is answered

    @property
    def options(self) -> dict[str, Check]:
        """Its options, those of every entry included."""
        return {**COMMON_OPTIONS, **self.own}


_AFTER: dict[str, Check] = {"after": _count}

_ENTRIES = (
    FaultType("ok", "answers", "a good answer: ok, ok(text)", {"text": _anything},
              positional=("text",), takes_rest=True, reaches=True),
    FaultType("shell", "answers", "asks for a shell command: shell(echo hi >> log)",
              {"command": _anything}, positional=("command",), takes_rest=True, reaches=True),
    FaultType("write", "answers", "asks for a file to be written: write(notes.txt, hello)",
              {"path": _anything, "content": _anything},
              positional=("path", "content"), takes_rest=True, reaches=True),
    FaultType("call", "answers", 'asks for any tool: call(search, {"q": "x"})',
              {"tool": _anything, "arguments": _object},
              positional=("tool", "arguments"), takes_rest=True, reaches=True),
    FaultType("empty", "answers", "an answer with nothing in it", reaches=True),
    FaultType("badjson", "answers", "a 200 whose body cannot be parsed", reaches=True),
    FaultType("2NN", "answers", "a good answer with another status: 202, 204 without a body",
              {"text": _anything}, positional=("text",), takes_rest=True, reaches=True),
    FaultType("3NN", "refusals", "a redirect, or 304: 307(/elsewhere), 308",
              {"location": _anything, "retry-after": _when}, positional=("location",)),
    FaultType("NNN", "refusals", "any status from 400 to 599 in the vendor's shape: 429, 503(2)",
              REFUSAL_OPTIONS, positional=("retry-after",)),
    FaultType("overloaded", "refusals", "the vendor's own overload: Anthropic 529, the others 503",
              REFUSAL_OPTIONS, positional=("retry-after",)),
    FaultType("plan", "refusals", "a plan's limit, refused until its reset: plan(5h), plan(7d)",
              {**REFUSAL_OPTIONS, "for": _duration}, positional=("for",)),
    FaultType("billing", "refusals", "no money left: nothing to wait for", REFUSAL_OPTIONS),
    FaultType("context", "refusals", "the prompt is too long", REFUSAL_OPTIONS),
    FaultType("model", "refusals", "no such model", REFUSAL_OPTIONS),
    FaultType("policy", "refusals", "the content is not allowed", REFUSAL_OPTIONS),
    FaultType("auth", "refusals", "the key is not accepted", REFUSAL_OPTIONS),
    FaultType("html", "refusals", "a gateway's page instead of JSON: html, html(504)",
              {"status": _status, "retry-after": _when}, positional=("status",)),
    FaultType("refuse", "connection", "the port is closed for a while: refuse(5s)",
              {"for": _duration}, positional=("for",)),
    FaultType("reset", "connection", "reset before the headers"),
    FaultType("close", "connection", "closed before the headers"),
    FaultType("hang", "connection", "no headers, ever: hang, hang(5s)",
              {"for": _duration}, positional=("for",)),
    FaultType("lost", "connection", "the write is applied, its answer is not sent", reaches=True),
    FaultType("stall", "streams", "goes silent after some events: stall, stall(3)",
              {**_AFTER, "for": _duration}, positional=("after", "for"), reaches=True),
    FaultType("drop", "streams", "reset after some events", _AFTER,
              positional=("after",), reaches=True),
    FaultType("cut", "streams", "closed inside a chunk after some events", _AFTER,
              positional=("after",), reaches=True),
    FaultType("truncate", "streams", "ends cleanly without its last event", _AFTER,
              positional=("after",), reaches=True),
    FaultType("error-event", "streams", "an error event inside a 200",
              {**_AFTER, "message": _anything}, positional=("after",), reaches=True),
    FaultType("drip", "streams", "one event at a time, with gaps: drip(0.2s)",
              {"gap": _duration}, positional=("gap",), reaches=True),
)  # fmt: skip

MENU = {each.name: each for each in _ENTRIES}
# Faults named by a status, as the printed menu shows them.
STATUSES = {"2NN": "200 … 299", "3NN": "300 … 399", "NNN": "400 … 599"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One entry of the menu with its options: what a request is answered with."""

    name: str  # of the menu, or a status as three digits
    options: tuple[tuple[str, str], ...] = ()  # in the order in which they were written

    @property
    def status(self) -> int | None:
        """The status it is named by, ``429``; None where the vendor chooses."""
        return int(self.name) if self.name.isdigit() else None

    @property
    def reaches(self) -> bool:
        """As of `FaultType.reaches`, unless the script says otherwise."""
        said = self.text("applied")
        return fault_type(self.name).reaches if said is None else said == "yes"

    def text(self, option: str) -> str | None:
        return next((value for key, value in self.options if key == option), None)

    def seconds(self, option: str) -> float | None:
        text = self.text(option)
        return None if text is None else _seconds(text, option)

    def count(self, option: str) -> int | None:
        text = self.text(option)
        return None if text is None else int(text)

    def __str__(self) -> str:
        """As a script writes it; reading it back gives the same fault."""
        if not self.options:
            return self.name
        entry = fault_type(self.name)
        is_plain = entry.takes_rest and all(
            key in entry.positional and "=" not in value for key, value in self.options
        )
        last = len(self.options) - 1
        values = [
            quoted(value, may_have_commas=is_plain and index == last)
            for index, (_, value) in enumerate(self.options)
        ]
        keys = ["" if is_plain else f"{key}=" for key, _ in self.options]
        said = (key + value for key, value in zip(keys, values, strict=True))
        return f"{self.name}({', '.join(said)})"


OK = Fault(name="ok")
# The answer of a request that the limits refuse; not on the menu, because scripts cannot name it.
LIMIT = Fault(name="limit")


def fault_type(name: str) -> FaultType:
    """The entry of that name, or a SettingError that names the nearest."""
    if _STATUS.fullmatch(name):
        return MENU.get(f"{name[0]}NN", MENU["NNN"])
    names = [each for each in MENU if each not in STATUSES]
    if name in names:
        return MENU[name]
    near = get_close_matches(name, names, n=1)
    known = f"did you mean {near[0]}?" if near else f"known are 200 to 599, {', '.join(names)}"
    raise SettingError(f"no fault is called {name!r}; {known}")


def parse_fault(name: str, arguments: str | None = None) -> Fault:
    """The fault for ``name(arguments)``, checked against the menu."""
    entry = fault_type(name)
    options = _options(name, entry, (arguments or "").strip())
    for key, value in options:
        try:
            entry.options.get(key, _anything)(value)
        except SettingError as error:
            raise SettingError(f"{name}({key}=…) {error}") from None
    return Fault(name=name, options=tuple(options))


def _options(name: str, entry: FaultType, arguments: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    # Free text may contain commas, so the options of every entry come before it.
    while entry.takes_rest and (common := _LEADING.match(arguments)):
        found.append((common[1], common[2].strip()))
        arguments = arguments[common.end() :]
    places = iter(entry.positional)
    most = len(entry.positional) - 1 if entry.takes_rest else -1
    for piece in pieces(arguments, ",", most) if arguments else ():
        key, is_named, value = (part.strip() for part in piece.partition("="))
        is_header = entry.group == "refusals" and _HEADER.fullmatch(key) is not None
        if is_header and key.lower() in _FRAMING:
            raise SettingError(f"{name} frames its body itself; got {piece.strip()!r}, use cut")
        if is_named and (is_header or key in entry.options):
            found.append((key, unquoted(value)))
            continue
        named = dict(found)
        place = next((each for each in places if each not in named), None)
        is_text = entry.takes_rest or not is_named or piece.strip().startswith('"')
        if place is not None and is_text:
            found.append((place, unquoted(piece.strip())))
        else:
            takes = ", ".join(entry.options)
            raise SettingError(f"{name} does not take {piece.strip()!r}; it takes {takes}")
    return found

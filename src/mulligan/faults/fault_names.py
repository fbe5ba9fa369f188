"""The catalogue of faults: names, options and help texts.

The menu is data: scripts are validated against it, `mulligan faults menu` prints it, and a test
uses every entry once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from ..core.duration import seconds
from ..errors import SettingError
from .grammar import pieces, quoted, unquoted
from .refusal_times import retry_after

__all__ = (
    "COMMON_OPTIONS",
    "MENU",
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
    seconds(float(text) if _NUMBER.fullmatch(text) else text, name="the duration")


def _count(text: str) -> None:
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise SettingError(f"needs a whole number such as 3; got {text!r}")


def _status(text: str) -> None:
    if not re.fullmatch(r"[45][0-9]{2}", text):
        raise SettingError(f"needs a status from 400 to 599; got {text!r}")


def _yes(text: str) -> None:
    if text not in {"yes", "no"}:
        raise SettingError(f"needs yes or no; got {text!r}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultType:
    """One entry of the menu.

    Args:
        name: As scripts write it.
        group: Where it stands in the printed menu.
        help: What the client sees, in a line.
        positional: The options that may be given without a name, in order.
        options: Every option of its own, with what checks it.
        takes_rest: The last positional takes all the text up to the closing parenthesis.
        reaches: Whether a write has been applied when this is answered.
    """

    name: str
    group: str
    help: str
    positional: tuple[str, ...] = ()
    options: tuple[tuple[str, Check], ...] = ()
    takes_rest: bool = False
    reaches: bool = False


def _type(
    name: str,
    group: str,
    help_: str,
    options: dict[str, Check] | None = None,
    *,
    positional: tuple[str, ...] = (),
    takes_rest: bool = False,
    reaches: bool = False,
) -> FaultType:
    return FaultType(
        name=name,
        group=group,
        help=help_,
        positional=positional,
        options=tuple({**COMMON_OPTIONS, **(options or {})}.items()),
        takes_rest=takes_rest,
        reaches=reaches,
    )


_AFTER: dict[str, Check] = {"after": _count}

_DISHES = (
    _type("ok", "answers", "a good answer: ok, ok(text)", {"text": _anything},
          positional=("text",), takes_rest=True, reaches=True),
    _type("shell", "answers", "asks for a shell command: shell(echo hi >> log)",
          {"command": _anything}, positional=("command",), takes_rest=True, reaches=True),
    _type("write", "answers", "asks for a file to be written: write(notes.txt, hello)",
          {"path": _anything, "content": _anything},
          positional=("path", "content"), takes_rest=True, reaches=True),
    _type("call", "answers", 'asks for any tool: call(search, {"q": "x"})',
          {"tool": _anything, "arguments": _object},
          positional=("tool", "arguments"), takes_rest=True, reaches=True),
    _type("empty", "answers", "an answer with nothing in it", reaches=True),
    _type("badjson", "answers", "a 200 whose body cannot be parsed", reaches=True),
    _type("2NN", "answers", "a good answer with another status: 202, 204 without a body",
          {"text": _anything}, positional=("text",), takes_rest=True, reaches=True),
    _type("3NN", "refusals", "a redirect, or 304: 307(/elsewhere), 308",
          {"location": _anything, "retry-after": _when}, positional=("location",)),
    _type("NNN", "refusals", "any status from 400 to 599 in the vendor's shape: 429, 503(2)",
          REFUSAL_OPTIONS, positional=("retry-after",)),
    _type("overloaded", "refusals", "the vendor's own overload: Anthropic 529, the others 503",
          REFUSAL_OPTIONS, positional=("retry-after",)),
    _type("plan", "refusals", "a plan's limit, refused until its reset: plan(5h), plan(7d)",
          {**REFUSAL_OPTIONS, "for": _duration}, positional=("for",)),
    _type("billing", "refusals", "no money left: nothing to wait for", REFUSAL_OPTIONS),
    _type("context", "refusals", "the prompt is too long", REFUSAL_OPTIONS),
    _type("model", "refusals", "no such model", REFUSAL_OPTIONS),
    _type("policy", "refusals", "the content is not allowed", REFUSAL_OPTIONS),
    _type("auth", "refusals", "the key is not accepted", REFUSAL_OPTIONS),
    _type("html", "refusals", "a gateway's page instead of JSON: html, html(504)",
          {"status": _status, "retry-after": _when}, positional=("status",)),
    _type("refuse", "connection", "the port is closed for a while: refuse(5s)",
          {"for": _duration}, positional=("for",)),
    _type("reset", "connection", "reset before the headers"),
    _type("close", "connection", "closed before the headers"),
    _type("hang", "connection", "no headers, ever: hang, hang(5s)",
          {"for": _duration}, positional=("for",)),
    _type("lost", "connection", "the write is applied, its answer is not sent", reaches=True),
    _type("stall", "streams", "goes silent after some events: stall, stall(3)",
          {**_AFTER, "for": _duration}, positional=("after", "for"), reaches=True),
    _type("drop", "streams", "reset after some events", _AFTER,
          positional=("after",), reaches=True),
    _type("cut", "streams", "closed inside a chunk after some events", _AFTER,
          positional=("after",), reaches=True),
    _type("truncate", "streams", "ends cleanly without its last event", _AFTER,
          positional=("after",), reaches=True),
    _type("error-event", "streams", "an error event inside a 200",
          {**_AFTER, "message": _anything}, positional=("after",), reaches=True),
    _type("drip", "streams", "one event at a time, with gaps: drip(0.2s)",
          {"gap": _duration}, positional=("gap",), reaches=True),
)  # fmt: skip

MENU = {each.name: each for each in _DISHES}
# Faults named by a status, as the printed menu shows them.
STATUSES = {"2NN": "200 … 299", "3NN": "300 … 399", "NNN": "400 … 599"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One entry of the menu with its options: what a request is answered with.

    Args:
        name: A name of the menu, or a status as three digits.
        options: What was asked for besides, in the order it was written.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def status(self) -> int | None:
        """The status it is named by, ``429``; None where the vendor chooses."""
        return int(self.name) if self.name.isdigit() else None

    @property
    def reaches(self) -> bool:
        """Whether a write has been applied when this is answered."""
        said = self.text("applied")
        return fault_type(self.name).reaches if said is None else said == "yes"

    def text(self, option: str) -> str | None:
        return next((value for key, value in self.options if key == option), None)

    def seconds(self, option: str) -> float | None:
        text = self.text(option)
        if text is None:
            return None
        return seconds(float(text) if _NUMBER.fullmatch(text) else text, name=option)

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
    known = dict(entry.options)
    options: list[tuple[str, str]] = []
    for key, value in _options(name, entry, (arguments or "").strip()):
        try:
            known.get(key, _anything)(value)
        except SettingError as error:
            raise SettingError(f"{name}({key}=…) {error}") from None
        options.append((key, value))
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
        if is_named and (is_header or key in dict(entry.options)):
            found.append((key, unquoted(value)))
            continue
        named = dict(found)
        place = next((each for each in places if each not in named), None)
        is_text = entry.takes_rest or not is_named or piece.strip().startswith('"')
        if place is not None and is_text:
            found.append((place, unquoted(piece.strip())))
        else:
            takes = ", ".join(key for key, _ in entry.options)
            raise SettingError(f"{name} does not take {piece.strip()!r}; it takes {takes}")
    return found

"""Patterns as data: which words of which program mean what.

A pack is an ordered list of entries; the first that matches decides. Files are read elsewhere
(`mulligan.config.packs`): here a pack is a value that is handed in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..core.failure import Kind
from ..errors import SettingError
from .pattern_cost import worst_case
from .times.zones import named_zone

__all__ = (
    "TEXT_LENGTH",
    "Entry",
    "Meaning",
    "Pack",
    "PackError",
    "Packs",
    "Voice",
    "check_cost",
    "pack_from",
)

# A pattern with more than this in it is several entries.
_LONGEST = 2000
_LONGEST_WITH_PARTS = 20_000
# What a message is cut to before it is matched.
TEXT_LENGTH = 4000
# Two `.*` in one pattern pass this; one does not, and neither does what is bounded: `.{0,80}`.
_MOST_STEPS = 1e11
# {window}: a part. {1,20} is a number of times.
_PART = re.compile(r"\{(?P<name>[a-z][a-z_]*)\}")


# \d and \s are not letters.
_CLASS = re.compile(r"\\[a-zA-Z]")
_LETTER = re.compile(r"[A-Za-z]")


class PackError(SettingError):
    """An invalid pack.

    Args:
        message: What was found, what to do.
        key: Which entry, ``entry[2] spend-cap``; empty for the whole pack.
    """

    def __init__(self, message: str, key: str = "") -> None:
        self.message, self.key = message, key
        super().__init__(f"{key}: {message}" if key else message)


class Voice(StrEnum):
    """Who must be speaking for an entry to count."""

    LINE = "line"  # a line that begins with the words, or an error that contains them
    ERROR = "error"  # only an error that contains them
    ANYWHERE = "anywhere"  # any line that contains them; for notices, never for limits
    STATED = "stated"  # a line that says them early, and when it resets
    WEAK = "weak"  # a statement that contains the words, not talk about them; asked last
    GUESS = "guess"  # an error in unknown words, or any of the last lines of a run that failed


class Meaning(StrEnum):
    """What an entry can say besides a kind of failure."""

    NOT_FAILURE = "not_failure"
    PROGRESS = "progress"  # the program goes on by itself
    WORK_LEFT = "work_left"  # no failure, but it ended its turn early because a limit is near


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One wording.

    Args:
        id: Its name within the pack.
        match: The pattern, upper or lower case, on one line with single blanks and plain quotes;
            in a file a list of patterns means any of them.
        means: A kind of failure, or a Meaning.
        with_reset: What it means if the message states when it resets; empty for the same.
        voice: Who must be speaking.
        zone: What a time without a zone means in this wording; empty for the host's zone.
        seen: Where it was seen: program, version or vendor page.
        is_foreign: Whether its letters are none of ASCII's, so that plain text is not asked.
    """

    id: str
    match: re.Pattern[str]
    means: Kind | Meaning
    with_reset: Kind | Meaning | None = None
    voice: Voice = Voice.LINE
    zone: str = ""
    seen: str = ""
    is_foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The wordings of one program or service.

    Args:
        name: ``claude``; also the name of the file.
        version: Counts up with every change.
        agents: Names under which users and adapters know the program; `name` is one of them.
        entries: In order; the first that matches decides.
        file: Where it was read from, for messages.
        is_builtin: Whether it came with Mulligan.
    """

    name: str
    version: int
    agents: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    file: str = ""
    is_builtin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Packs:
    """All packs, in the order in which they are asked.

    Args:
        packs: Users' own first, then the built-in ones by name, ``generic`` last.
    """

    packs: tuple[Pack, ...] = ()
    _orders: dict[str, tuple[tuple[Pack, Entry], ...]] = field(default_factory=dict, repr=False)

    def entries(self, agent: str) -> tuple[tuple[Pack, Entry], ...]:
        """Every entry with its pack: users' own first, then those of `agent`."""
        order = self._orders.get(agent)
        if order is None:
            # The generic pack stays last, even if a program has its name.
            users = [pack for pack in self.packs if not pack.is_builtin]
            own = [
                pack
                for pack in self.packs
                if agent in (pack.name, *pack.agents) and pack.name != "generic"
            ]
            asked = list(dict.fromkeys((*users, *own, *self.packs)))
            order = tuple((pack, entry) for pack in asked for entry in pack.entries)
            self._orders[agent] = order
        return order


def pack_from(
    data: Mapping[str, object], *, name: str, file: str = "", is_builtin: bool = False
) -> Pack:
    """The pack that a TOML table holds, or a PackError that names the entry."""
    unknown = set(data) - {"version", "agents", "parts", "entry", "about"}
    if unknown:
        known = "version, about, agents, parts, entry"
        raise PackError(f"unknown key {min(unknown)!r}; a pack has {known}")
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise PackError(f"version needs a whole number from 1; got {version!r}")
    agents, entries = data.get("agents", []), data.get("entry", [])
    if not isinstance(agents, list) or not all(isinstance(one, str) for one in agents):
        raise PackError(f"agents needs a list of names; got {agents!r}")
    if not isinstance(entries, list) or not entries:
        raise PackError("a pack needs at least one [[entry]]")
    parts = _parts(data.get("parts", {}))
    read = [_entry(entry, index, parts) for index, entry in enumerate(entries)]
    if not is_builtin:  # those that came with Mulligan are tested, which takes longer than to load
        for index, entry in enumerate(read):
            check_cost(entry.match.pattern, f"entry[{index}] {entry.id}")
            _check_zone(entry.zone, f"entry[{index}] {entry.id}")
    names = [entry.id for entry in read]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise PackError(f"two entries are called {twice!r}; give each its own id")
    return Pack(
        name=name,
        version=version,
        agents=tuple(agents),
        entries=tuple(read),
        file=file,
        is_builtin=is_builtin,
    )


def _parts(data: object) -> dict[str, str]:
    """Pieces of patterns by name; each may use those above it."""
    if not isinstance(data, Mapping):
        raise PackError(f"parts needs a table of pieces of patterns; got {data!r}")
    parts: dict[str, str] = {}
    for name, text in data.items():
        key = f"parts.{name}"
        if not _PART.fullmatch(f"{{{name}}}"):
            raise PackError("a part's name has small letters and underscores only", key)
        if not isinstance(text, str) or not text:
            raise PackError(f"needs text; got {text!r}", key)
        parts[name] = f"(?:{_with_parts(text, parts, key)})"
        _compiled(parts[name], key)
    return parts


def _with_parts(text: str, parts: Mapping[str, str], key: str) -> str:
    """`text` with its parts put in."""
    for found in _PART.finditer(text):
        if found["name"] not in parts:
            known = f"known: {', '.join(parts)}" if parts else "the pack has no [parts]"
            raise PackError(f"there is no part {found[0]}; {known}", key)
    whole = _PART.sub(lambda found: parts[found["name"]], text)
    if len(whole) > _LONGEST_WITH_PARTS:
        most = f"at most {_LONGEST_WITH_PARTS}"
        raise PackError(f"with its parts it has {len(whole)} characters; {most}", key)
    return whole


_KEYS = ("id", "match", "kind", "with_reset", "voice", "zone", "seen")


def _entry(data: object, index: int, parts: Mapping[str, str]) -> Entry:
    key = f"entry[{index}]"
    if not isinstance(data, Mapping):
        raise PackError(f"needs a table; got {data!r}", key)
    values = {name: data.get(name, "") for name in _KEYS}
    if isinstance(values["match"], list) and all(isinstance(one, str) for one in values["match"]):
        values["match"] = "|".join(f"(?:{one})" for one in values["match"])
    if isinstance(values["id"], str) and values["id"]:
        key = f"{key} {values['id']}"
    unknown = set(data) - set(_KEYS)
    if unknown:
        raise PackError(f"unknown key {min(map(str, unknown))!r}; known: {', '.join(_KEYS)}", key)
    for name, value in values.items():
        if not isinstance(value, str):
            raise PackError(f"{name} needs text; got {value!r}", key)
    texts = {name: str(value) for name, value in values.items()}
    for name in ("id", "match", "kind", "seen"):
        if not texts[name].strip():
            raise PackError(f"{name} is missing", key)
    match = _pattern(texts["match"], parts, key)
    return Entry(
        id=texts["id"],
        match=match,
        means=_means(texts["kind"], key, "kind"),
        with_reset=_means(texts["with_reset"], key, "with_reset") if texts["with_reset"] else None,
        voice=_voice(texts["voice"], key),
        zone=texts["zone"],
        seen=texts["seen"],
        is_foreign=_is_foreign(match.pattern),
    )


def _is_foreign(pattern: str) -> bool:
    return not pattern.isascii() and _LETTER.search(_CLASS.sub("", pattern)) is None


def _pattern(text: str, parts: Mapping[str, str], key: str) -> re.Pattern[str]:
    if len(text) > _LONGEST:
        raise PackError(f"match has {len(text)} characters; at most {_LONGEST}, split it", key)
    pattern = _compiled(_with_parts(text, parts, key), key)
    if pattern.search("") is not None:
        raise PackError("match fits an empty line, so it would match everything", key)
    return pattern


def check_cost(pattern: str, key: str) -> None:
    """Refuse a pattern that could take minutes on a single message."""
    if worst_case(pattern, TEXT_LENGTH) > _MOST_STEPS:
        raise PackError(
            f"match could take minutes on {TEXT_LENGTH} characters: something that repeats stands "
            "in something that repeats, or twice in a row; bound it, as in .{0,80} for .*",
            key,
        )


def _compiled(text: str, key: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        what = "it" if key.startswith("parts.") else "match"
        raise PackError(f"{what} is not a regular expression: {error}", key) from None


def _means(text: str, key: str, name: str) -> Kind | Meaning:
    for vocabulary in (Kind, Meaning):
        try:
            return vocabulary(text)
        except ValueError:
            continue
    raise PackError(f"{name} needs one of {', '.join([*Kind, *Meaning])}; got {text!r}", key)


def _voice(text: str, key: str) -> Voice:
    try:
        return Voice(text or Voice.LINE)
    except ValueError:
        raise PackError(f"voice needs one of {', '.join(Voice)}; got {text!r}", key) from None


def _check_zone(text: str, key: str) -> None:
    if text and named_zone(text) is None:
        raise PackError(f"zone needs an IANA name such as Asia/Shanghai; got {text!r}", key)

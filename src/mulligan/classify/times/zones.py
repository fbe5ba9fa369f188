"""Time zones as programs name them.

IANA names (legacy ones too: they come from the tzdata package), ``UTC+2``, ``GMT+5:30``,
``+0800 CST``, abbreviations, "Pacific Time". An abbreviation that several countries use means the
host's, if the host uses it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from ...core.lazy_pattern import lazy
from ...core.record import record

__all__ = ("Zone", "named_zone", "zone_at", "zone_in_front")


@record(kw_only=True)
class Zone:
    """A stated zone.

    Args:
        tz: What it means.
        end: Where it ends in the text.
        is_ambiguous: Whether another country uses the same letters.
    """

    tz: tzinfo
    end: int
    is_ambiguous: bool = False


# Hours east of Greenwich. Where letters are shared the larger crowd of users wins, unless the
# host's own zone goes by them.
_ABBREVIATIONS = {
    "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4,
    "AKST": -9, "AKDT": -8, "HST": -10, "AST": -4, "ADT": -3, "NST": -3.5, "NDT": -2.5,
    "BRT": -3, "ART": -3, "CLT": -4, "CLST": -3, "COT": -5, "PET": -5,
    "WET": 0, "WEST": 1, "BST": 1, "IST": 5.5, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2,
    "EET": 2, "EEST": 3, "MSK": 3, "TRT": 3, "SAST": 2, "CAT": 2, "EAT": 3, "WAT": 1,
    "GST": 4, "PKT": 5, "NPT": 5.75, "BDT": 6, "ICT": 7, "WIB": 7, "HKT": 8, "SGT": 8, "PHT": 8,
    "AWST": 8, "KST": 9, "JST": 9, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11,
    "NZST": 12, "NZDT": 13,
}  # fmt: skip
_SHARED = {"CST", "IST", "BST", "AST", "GST", "BDT", "PET"}
_REGIONS = {
    "PT": "America/Los_Angeles", "MT": "America/Denver", "CT": "America/Chicago",
    "ET": "America/New_York", "PACIFIC": "America/Los_Angeles", "MOUNTAIN": "America/Denver",
    "CENTRAL": "America/Chicago", "EASTERN": "America/New_York",
}  # fmt: skip

_IANA = lazy(r"[A-Za-z]{2,20}(?:/[A-Za-z][A-Za-z0-9_+-]{1,40}){1,2}")
_OFFSET = r"(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2}))?(?!\d)"
_UTC = lazy(rf"(?:UTC|GMT|Z)(?![A-Za-z/])(?:\s?{_OFFSET})?", re.IGNORECASE)
_PLAIN = lazy(
    r"(?P<sign>[+-])(?P<h>\d{2})(?::?(?P<m>\d{2})|(?![\d:]))(?!\d)(?:\s+\(?[A-Z]{2,5}\b\)?)?"
)
_LETTERS = lazy(r"[A-Za-z]{2,5}(?![A-Za-z0-9/_])")
_REGION = lazy(
    r"(?P<name>pacific|mountain|central|eastern)(?:\s+(?:standard|daylight))?(?:\s+time)?\b",
    re.IGNORECASE,
)
# Where these countries are written, their time stands in front: 北京时间 18:30.
_COUNTRY = lazy(
    r"(?P<p8>北京|中国|中國|上海|香港|台北|台湾|台灣)(?:标准|標準)?[时時][间間]"
    r"|(?P<p9>(?:日本|東京|韓国|韩国)(?:标准|標準)?[时時][间間刻]|(?:한국|서울)\s?(?:표준\s?)?(?:시간|시각))"
    r"|(?P<utc>(?:UTC|GMT)(?:[时時][间間])?(?=[)\s:]{1,3}\d))"
)
_CLOSING = lazy(r"[)\s:]{0,3}")
_LOCAL = lazy(r"(?:your\s+)?local(?:\s+time)?\b|Ortszeit\b|hora local\b", re.IGNORECASE)


def zone_at(text: str, start: int, *, local: tzinfo | None, now: float) -> Zone | None:
    """The zone that begins at `start`, in parentheses or not; or None."""
    if text.startswith("(", start):
        found = zone_at(text, start + 1, local=local, now=now)
        if found is None:
            return None
        end = found.end + text.startswith(")", found.end)
        return Zone(tz=found.tz, end=end, is_ambiguous=found.is_ambiguous)
    for reader in (_country, _iana, _offset, _region):
        if (found := reader(text, start)) is not None:
            return found
    if local is not None and (match := _LOCAL.match(text, start)):
        return Zone(tz=local, end=match.end())
    return _by_letters(text, start, local=local, now=now)


def zone_in_front(text: str, start: int) -> Zone | None:
    """The zone that stands in front of its time at `start`, or None."""
    found = _country(text, start)
    closing = None if found is None else _CLOSING.match(text, found.end)
    return None if found is None or closing is None else replace(found, end=closing.end())


def _country(text: str, start: int) -> Zone | None:
    match = _COUNTRY.match(text, start)
    if match is None:
        return None
    hours = 8 if match["p8"] else 9 if match["p9"] else 0
    return Zone(tz=timezone(timedelta(hours=hours)), end=match.end())


def _iana(text: str, start: int) -> Zone | None:
    match = _IANA.match(text, start)
    named = None if match is None else named_zone(match[0])
    return None if match is None or named is None else Zone(tz=named, end=match.end())


def _offset(text: str, start: int) -> Zone | None:
    match = _UTC.match(text, start) or _PLAIN.match(text, start)
    if match is None:
        return None
    return _fixed(match) if match["h"] else Zone(tz=UTC, end=match.end())


def _region(text: str, start: int) -> Zone | None:
    match = _REGION.match(text, start)
    named = None if match is None else named_zone(_REGIONS[match["name"].upper()])
    return None if match is None or named is None else Zone(tz=named, end=match.end())


def named_zone(name: str) -> tzinfo | None:
    """The IANA zone `name`, in whatever case it was written; None if there is none."""
    from zoneinfo import ZoneInfo  # the first failure of a process rarely names a zone

    for spelling in (name, "/".join(_titled(part) for part in name.split("/"))):
        try:
            return ZoneInfo(spelling)
        except (KeyError, ValueError, OSError):  # not found, not a key, or a folder of zones
            continue
    return None


def _titled(part: str) -> str:
    return "_".join(word[:1].upper() + word[1:].lower() for word in part.split("_"))


def _fixed(match: re.Match[str]) -> Zone | None:
    minutes = int(match["h"]) * 60 + int(match["m"] or 0)
    if minutes > 15 * 60:
        return None
    offset = timedelta(minutes=-minutes if match["sign"] == "-" else minutes)
    return Zone(tz=timezone(offset), end=match.end())


def _by_letters(text: str, start: int, *, local: tzinfo | None, now: float) -> Zone | None:
    match = _LETTERS.match(text, start)
    if match is None:
        return None
    letters = match[0].upper()
    # "est" and "mst" are words elsewhere; only letters that are no word may be lower case.
    if match[0] != letters and letters not in ("PST", "PDT", "EDT", "CET", "CEST", "JST"):
        return None
    if letters in _REGIONS and (region := named_zone(_REGIONS[letters])) is not None:
        return Zone(tz=region, end=match.end())
    if letters not in _ABBREVIATIONS:
        return None
    # Half a year apart: a zone with summer time goes by two names.
    for moment in () if local is None else (now, now + 15768000):
        try:
            there = datetime.fromtimestamp(moment, local)
        except (ValueError, OverflowError, OSError):
            break
        if there.tzname() == letters and (offset := there.utcoffset()) is not None:
            return Zone(tz=timezone(offset), end=match.end())
    hours = _ABBREVIATIONS[letters]
    return Zone(
        tz=timezone(timedelta(hours=hours)), end=match.end(), is_ambiguous=letters in _SHARED
    )

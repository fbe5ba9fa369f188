"""The grammar of what loggers put in front of a line: a time, a level, a name.

Every module that meets a log line uses these patterns, so that a stamp is known everywhere or
nowhere.
"""

from __future__ import annotations

import re

__all__ = ("ERROR_LEVELS", "LEVEL", "STAMP", "TIME", "is_stamped", "without_stamp")

_DATE = r"\d{4}[-/.]\d\d[-/.]\d\d"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:\s?(?:[AP]M|Z|UTC|[+-]\d\d:?\d\d))?"
#: 2026-07-06T12:00:01.123Z   [12:00:01]   Jul  6 12:00:01   06/Jul/2026:12:00:01 +0000
TIME = (
    rf"\[?(?:{_DATE}[T ]{_CLOCK}|\d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:\s[AP]M)?"
    rf"|[A-Z][a-z]{{2}} {{1,2}}\d{{1,2}}(?:,? \d{{4}},?)? \d\d:\d\d:\d\d"
    rf"|\d{{1,2}}/[A-Z][a-z]{{2}}/\d{{4}}[: ]{_CLOCK})\]?"
)
LEVEL = r"(?:DEBUG|TRACE|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC)"
ERROR_LEVELS = ("ERROR", "ERR", "FATAL", "CRITICAL", "SEVERE", "PANIC")
# [agent/embedded]: who logs it, unless it is the level
_NAMES = rf"(?:\[(?!(?i:{LEVEL}|VERBOSE)\])[\w./:@#-]{{1,40}}\]\s*){{0,3}}"
# Jul  6 12:00:01 host agent[312]: …
_SYSLOG = r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,60} [\w./-]{1,40}(?:\[\d{1,7}\])?: "
#: A time with the names behind it.
STAMP = rf"(?:{_SYSLOG}|{TIME}(?:\s*\|\s*|(?:\s-)?\s+|(?=\[)){_NAMES})"
_STAMP = re.compile(rf"\s{{0,8}}{STAMP}")
_RECORD = re.compile(
    rf"\s{{0,8}}(?:{TIME}[\s|\[]|\[?{LEVEL}[\]:\s]|(?:\w{{1,20}}=\S{{1,60}} )?level=)"
)


def is_stamped(line: str) -> bool:
    """Whether a logger began `line`: with a time, or with a level."""
    return _RECORD.match(line) is not None


def without_stamp(line: str) -> str:
    """`line` without its time and the names behind it."""
    found = _STAMP.match(line)
    return line[found.end() :] if found else line

"""Records of a log that were printed as JSON: a level, a message.

They say no more than a line of a log does, so they are read as one. What is below an error is no
complaint of the program about itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from .bodies import error_words
from .streams import cut

__all__ = ("is_record", "logged")

_LEVELS = ("level", "lvl", "severity", "levelname", "log.level")
_MESSAGES = ("msg", "message", "text", "event", "stdout", "stderr")
_ERRORS = ("err", "error", "exception")
# Pino and Bunyan count in tens.
_NUMBERS = {10: "DEBUG", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_NAMES = {"warning": "WARN", "err": "ERROR", "panic": "FATAL", "trace": "DEBUG", "crit": "CRITICAL"}
_MOST = 40


def is_record(data: object) -> bool:
    """Whether `data` is a record of a log, of whatever level."""
    is_leveled = isinstance(data, Mapping) and any(key in data for key in _LEVELS)
    return isinstance(data, Mapping) and is_leveled and any(key in data for key in _MESSAGES)


def logged(data: object) -> list[str]:
    """`data` as lines of a log; none if it is no record of an error."""
    if not isinstance(data, Mapping) or "type" in data:
        return []
    level = next((_level(data[key]) for key in _LEVELS if key in data), "")
    fields = data.get("fields")
    inner = {**fields, **data} if isinstance(fields, Mapping) else data
    said = [inner[key] for key in _MESSAGES if isinstance(inner.get(key), str)]
    said += [words.text for key in _ERRORS if (words := error_words(inner.get(key))).text]
    if level not in ("ERROR", "FATAL", "CRITICAL") or not said:
        return []
    first, *rest = "\n".join(dict.fromkeys(said)).split("\n")[:_MOST]
    return [cut(f"{level} {first}"), *(cut(line) for line in rest)]


def _level(value: object) -> str:
    if isinstance(value, int):
        return _NUMBERS.get(value, "")
    name = str(value).strip().lower()
    known = ("debug", "info", "notice", "warn", "error", "fatal", "critical")
    return _NAMES.get(name, name.upper() if name in known else "")

"""Mulligan gives AI agents the right second chance.

Importing this package runs none of its modules: names load when they are first used, and the
core loads at the first failure.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .core.failure import Effects, Failure, Family, Kind, Reach, View
    from .core.hint import Hint
    from .errors import (
        CircuitOpen,
        FailedAnswer,
        FileError,
        LimitReached,
        MissingExtra,
        MulliganError,
        NotAdmitted,
        SettingError,
    )

# Where each public name lives. A test compares this table with the imports above.
_HOME = {
    "CircuitOpen": "errors",
    "Effects": "core.failure",
    "FailedAnswer": "errors",
    "Failure": "core.failure",
    "Family": "core.failure",
    "FileError": "errors",
    "Hint": "core.hint",
    "Kind": "core.failure",
    "LimitReached": "errors",
    "MissingExtra": "errors",
    "MulliganError": "errors",
    "NotAdmitted": "errors",
    "Reach": "core.failure",
    "SettingError": "errors",
    "View": "core.failure",
}

__all__ = [
    "CircuitOpen",
    "Effects",
    "FailedAnswer",
    "Failure",
    "Family",
    "FileError",
    "Hint",
    "Kind",
    "LimitReached",
    "MissingExtra",
    "MulliganError",
    "NotAdmitted",
    "Reach",
    "SettingError",
    "View",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Mulligan gives AI agents the right second chance.

Importing this package runs none of its modules: names load when they are first used, and the
core loads at the first failure.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.guard import Guard
    from .api.judge import judge_response
    from .api.letterbox import DeadLetters
    from .api.once import Once, new_key
    from .api.replayable import replayable
    from .api.retry import acall, attempts, call, retry
    from .api.sharing import headers_of
    from .api.task import task
    from .classify.classifier import Classifier, classifier
    from .config.loader import load_policy
    from .core.backoff import Exponential, Fixed, Linear, Schedule
    from .core.decision import Ending, GiveUp, Park, RetryAfter, Verify
    from .core.events import (
        BreakerChanged,
        Cancelled,
        Ended,
        Event,
        Failed,
        GateShut,
        Held,
        Recovered,
        StoreBack,
        StoreLost,
        Succeeded,
        Verified,
    )
    from .core.failure import Effects, Failure, Family, Kind, Reach, View
    from .core.hint import Hint
    from .core.policy import Policy, Rule
    from .core.presets import preset
    from .core.sharing import Breaker, Gate, Tokens
    from .core.story import Story, Try
    from .core.timeouts import SERVICE_TIMEOUTS, Timeouts
    from .drivers.ambient import Context, current
    from .drivers.notes import story
    from .drivers.verdict import APPLIED, NOT_APPLIED
    from .errors import (
        CircuitOpen,
        DeadlinePassed,
        FailedAnswer,
        Fenced,
        FileError,
        KeyBusy,
        KeyReused,
        LimitReached,
        MissingExtra,
        MulliganError,
        NotAdmitted,
        NotKept,
        SettingError,
        StoreDown,
        StoreError,
    )
    from .telemetry.counters import Counters
    from .telemetry.logging import LogListener

# Where each public name lives. A test compares this table with the imports above.
_HOME = {
    "APPLIED": "drivers.verdict",
    "Breaker": "core.sharing",
    "BreakerChanged": "core.events",
    "Cancelled": "core.events",
    "CircuitOpen": "errors",
    "Classifier": "classify.classifier",
    "Context": "drivers.ambient",
    "Counters": "telemetry.counters",
    "DeadLetters": "api.letterbox",
    "DeadlinePassed": "errors",
    "Effects": "core.failure",
    "Ended": "core.events",
    "Ending": "core.decision",
    "Event": "core.events",
    "Exponential": "core.backoff",
    "Failed": "core.events",
    "FailedAnswer": "errors",
    "Failure": "core.failure",
    "Family": "core.failure",
    "Fenced": "errors",
    "FileError": "errors",
    "Fixed": "core.backoff",
    "Gate": "core.sharing",
    "GateShut": "core.events",
    "GiveUp": "core.decision",
    "Guard": "api.guard",
    "Held": "core.events",
    "Hint": "core.hint",
    "KeyBusy": "errors",
    "KeyReused": "errors",
    "Kind": "core.failure",
    "LimitReached": "errors",
    "Linear": "core.backoff",
    "LogListener": "telemetry.logging",
    "MissingExtra": "errors",
    "MulliganError": "errors",
    "NOT_APPLIED": "drivers.verdict",
    "NotAdmitted": "errors",
    "NotKept": "errors",
    "Once": "api.once",
    "Park": "core.decision",
    "Policy": "core.policy",
    "Reach": "core.failure",
    "Recovered": "core.events",
    "RetryAfter": "core.decision",
    "Rule": "core.policy",
    "SERVICE_TIMEOUTS": "core.timeouts",
    "Schedule": "core.backoff",
    "SettingError": "errors",
    "StoreBack": "core.events",
    "StoreDown": "errors",
    "StoreError": "errors",
    "StoreLost": "core.events",
    "Story": "core.story",
    "Succeeded": "core.events",
    "Timeouts": "core.timeouts",
    "Tokens": "core.sharing",
    "Try": "core.story",
    "Verified": "core.events",
    "Verify": "core.decision",
    "View": "core.failure",
    "acall": "api.retry",
    "attempts": "api.retry",
    "call": "api.retry",
    "classifier": "classify.classifier",
    "current": "drivers.ambient",
    "headers_of": "api.sharing",
    "judge_response": "api.judge",
    "load_policy": "config.loader",
    "new_key": "api.once",
    "preset": "core.presets",
    "replayable": "api.replayable",
    "retry": "api.retry",
    "story": "drivers.notes",
    "task": "api.task",
}

__all__ = [
    "APPLIED",
    "NOT_APPLIED",
    "SERVICE_TIMEOUTS",
    "Breaker",
    "BreakerChanged",
    "Cancelled",
    "CircuitOpen",
    "Classifier",
    "Context",
    "Counters",
    "DeadLetters",
    "DeadlinePassed",
    "Effects",
    "Ended",
    "Ending",
    "Event",
    "Exponential",
    "Failed",
    "FailedAnswer",
    "Failure",
    "Family",
    "Fenced",
    "FileError",
    "Fixed",
    "Gate",
    "GateShut",
    "GiveUp",
    "Guard",
    "Held",
    "Hint",
    "KeyBusy",
    "KeyReused",
    "Kind",
    "LimitReached",
    "Linear",
    "LogListener",
    "MissingExtra",
    "MulliganError",
    "NotAdmitted",
    "NotKept",
    "Once",
    "Park",
    "Policy",
    "Reach",
    "Recovered",
    "RetryAfter",
    "Rule",
    "Schedule",
    "SettingError",
    "StoreBack",
    "StoreDown",
    "StoreError",
    "StoreLost",
    "Story",
    "Succeeded",
    "Timeouts",
    "Tokens",
    "Try",
    "Verified",
    "Verify",
    "View",
    "acall",
    "attempts",
    "call",
    "classifier",
    "current",
    "headers_of",
    "judge_response",
    "load_policy",
    "new_key",
    "preset",
    "replayable",
    "retry",
    "story",
    "task",
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

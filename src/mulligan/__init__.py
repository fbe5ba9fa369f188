"""Mulligan gives AI agents the right second chance.

Importing this package runs none of its modules: names load when they are first used, and the
core loads at the first failure.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .adapters.effects import effects
    from .adapters.problem import ProblemDocument, problem
    from .api.answer_cache import AnswerCache
    from .api.guard import Guard
    from .api.judge import is_unjudged, judge_response
    from .api.retry import acall, attempts, call, retry
    from .api.switch import Switch, SwitchAnswer
    from .api.task import task
    from .calls.context import Context, current
    from .calls.notes import story
    from .calls.settings import APPLIED, NOT_APPLIED
    from .classify.classifier import Classifier, classifier
    from .classify.objects import headers_of
    from .config.loader import load_policy
    from .core.backoff import Exponential, Fixed, Linear, Schedule
    from .core.decisions import Ending, GiveUp, Park, RetryAfter, Verify
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
    from .core.failure import Effects, Failure, Family, Kind, Reach, Retryability
    from .core.hint import Hint
    from .core.policy import Policy, Rule
    from .core.presets import preset
    from .core.shared_settings import Breaker, Gate, Tokens
    from .core.story import Story, Try
    from .core.timeouts import SERVICE_TIMEOUTS, Timeouts
    from .dead_letters.browse import DeadLetters
    from .dead_letters.replayable import replayable
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
    from .once.api import Once, new_key
    from .telemetry.background import BackgroundListener
    from .telemetry.json_lines import JsonLinesListener
    from .telemetry.logging import LogListener, StructlogListener
    from .telemetry.metrics import Counters
    from .telemetry.opentelemetry import OpenTelemetryListener
    from .telemetry.prometheus import PrometheusListener
    from .telemetry.store import StoreListener
    from .tools.correction import Corrected, Correction, correct
    from .tools.delegation import Delegated, Delegations, delegate, delegate_all
    from .tools.results import ToolResult
    from .tools.toolbox import Toolbox

# Where each public name lives. A test compares this table with the imports above.
_HOME = {
    "APPLIED": "calls.settings",
    "AnswerCache": "api.answer_cache",
    "BackgroundListener": "telemetry.background",
    "Breaker": "core.shared_settings",
    "BreakerChanged": "core.events",
    "Cancelled": "core.events",
    "CircuitOpen": "errors",
    "Classifier": "classify.classifier",
    "Context": "calls.context",
    "Corrected": "tools.correction",
    "Correction": "tools.correction",
    "Counters": "telemetry.metrics",
    "DeadLetters": "dead_letters.browse",
    "DeadlinePassed": "errors",
    "Delegated": "tools.delegation",
    "Delegations": "tools.delegation",
    "Effects": "core.failure",
    "Ended": "core.events",
    "Ending": "core.decisions",
    "Event": "core.events",
    "Exponential": "core.backoff",
    "Failed": "core.events",
    "FailedAnswer": "errors",
    "Failure": "core.failure",
    "Family": "core.failure",
    "Fenced": "errors",
    "FileError": "errors",
    "Fixed": "core.backoff",
    "Gate": "core.shared_settings",
    "GateShut": "core.events",
    "GiveUp": "core.decisions",
    "Guard": "api.guard",
    "Held": "core.events",
    "Hint": "core.hint",
    "JsonLinesListener": "telemetry.json_lines",
    "KeyBusy": "errors",
    "KeyReused": "errors",
    "Kind": "core.failure",
    "LimitReached": "errors",
    "Linear": "core.backoff",
    "LogListener": "telemetry.logging",
    "MissingExtra": "errors",
    "MulliganError": "errors",
    "NOT_APPLIED": "calls.settings",
    "NotAdmitted": "errors",
    "NotKept": "errors",
    "Once": "once.api",
    "OpenTelemetryListener": "telemetry.opentelemetry",
    "Park": "core.decisions",
    "Policy": "core.policy",
    "ProblemDocument": "adapters.problem",
    "PrometheusListener": "telemetry.prometheus",
    "Reach": "core.failure",
    "Recovered": "core.events",
    "RetryAfter": "core.decisions",
    "Rule": "core.policy",
    "SERVICE_TIMEOUTS": "core.timeouts",
    "Schedule": "core.backoff",
    "SettingError": "errors",
    "StoreBack": "core.events",
    "StoreDown": "errors",
    "StoreError": "errors",
    "StoreListener": "telemetry.store",
    "StoreLost": "core.events",
    "Story": "core.story",
    "StructlogListener": "telemetry.logging",
    "Succeeded": "core.events",
    "Switch": "api.switch",
    "SwitchAnswer": "api.switch",
    "Timeouts": "core.timeouts",
    "Tokens": "core.shared_settings",
    "ToolResult": "tools.results",
    "Toolbox": "tools.toolbox",
    "Try": "core.story",
    "Verified": "core.events",
    "Verify": "core.decisions",
    "Retryability": "core.failure",
    "acall": "api.retry",
    "attempts": "api.retry",
    "call": "api.retry",
    "classifier": "classify.classifier",
    "correct": "tools.correction",
    "current": "calls.context",
    "delegate": "tools.delegation",
    "delegate_all": "tools.delegation",
    "effects": "adapters.effects",
    "headers_of": "classify.objects",
    "is_unjudged": "api.judge",
    "judge_response": "api.judge",
    "load_policy": "config.loader",
    "new_key": "once.api",
    "preset": "core.presets",
    "problem": "adapters.problem",
    "replayable": "dead_letters.replayable",
    "retry": "api.retry",
    "story": "calls.notes",
    "task": "api.task",
}

__all__ = [
    "APPLIED",
    "NOT_APPLIED",
    "SERVICE_TIMEOUTS",
    "AnswerCache",
    "BackgroundListener",
    "Breaker",
    "BreakerChanged",
    "Cancelled",
    "CircuitOpen",
    "Classifier",
    "Context",
    "Corrected",
    "Correction",
    "Counters",
    "DeadLetters",
    "DeadlinePassed",
    "Delegated",
    "Delegations",
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
    "JsonLinesListener",
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
    "OpenTelemetryListener",
    "Park",
    "Policy",
    "ProblemDocument",
    "PrometheusListener",
    "Reach",
    "Recovered",
    "RetryAfter",
    "Retryability",
    "Rule",
    "Schedule",
    "SettingError",
    "StoreBack",
    "StoreDown",
    "StoreError",
    "StoreListener",
    "StoreLost",
    "Story",
    "StructlogListener",
    "Succeeded",
    "Switch",
    "SwitchAnswer",
    "Timeouts",
    "Tokens",
    "ToolResult",
    "Toolbox",
    "Try",
    "Verified",
    "Verify",
    "acall",
    "attempts",
    "call",
    "classifier",
    "correct",
    "current",
    "delegate",
    "delegate_all",
    "effects",
    "headers_of",
    "is_unjudged",
    "judge_response",
    "load_policy",
    "new_key",
    "preset",
    "problem",
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

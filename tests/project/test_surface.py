"""The public names, frozen: a change here is a change for every user."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import mulligan

SURFACE = [
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

TESTING = (
    "FaultServer",
    "LoadedDice",
    "Scripted",
    "VirtualClock",
    "status_error",
    "virtual_time",
)


RUN = (
    "Agent",
    "AgentReport",
    "Decision",
    "Phase",
    "PhaseReport",
    "Plan",
    "Report",
    "load_plan",
    "run_plan",
)


def test_the_surface_for_plans_is_frozen():
    import mulligan.run

    assert mulligan.run.__all__ == RUN == tuple(mulligan.run._HOME)
    assert dir(mulligan.run) == sorted(RUN)
    for name in RUN:
        home = importlib.import_module(f"mulligan.run.{mulligan.run._HOME[name]}")
        assert getattr(mulligan.run, name) is getattr(home, name)
        assert getattr(home, name).__doc__
    with pytest.raises(AttributeError, match=r"^module 'mulligan.run' has no attribute 'plna'$"):
        mulligan.run.plna  # noqa: B018


def test_the_surface_is_frozen():
    assert mulligan.__all__ == SURFACE


def test_the_surface_for_tests_is_frozen():
    import mulligan.testing

    assert mulligan.testing.__all__ == TESTING


def test_dir_shows_the_surface_and_nothing_else():
    assert dir(mulligan) == sorted(SURFACE)


def test_the_table_of_names_says_what_type_checkers_are_told():
    source = Path(mulligan.__file__ or "").read_text(encoding="utf-8")
    told = {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == mulligan._HOME
    assert sorted(told) == sorted(SURFACE)


@pytest.mark.parametrize("name", SURFACE)
def test_every_name_is_where_the_table_says(name):
    home = importlib.import_module(f"mulligan.{mulligan._HOME[name]}")
    assert getattr(mulligan, name) is getattr(home, name)
    assert name in home.__all__


@pytest.mark.parametrize("name", SURFACE)
def test_every_name_has_a_docstring(name):
    value = getattr(mulligan, name)
    if name == "SERVICE_TIMEOUTS":  # a table; its rows are documented by their class
        return
    own = value.__doc__ if inspect.isclass(value) or callable(value) else type(value).__doc__
    assert own
    # A dataclass without a docstring is given its signature as one.
    assert not own.startswith(f"{name}(")


@pytest.mark.parametrize(
    "cls",
    [value for name in SURFACE if inspect.isclass(value := getattr(mulligan, name))],
    ids=lambda cls: cls.__name__,
)
def test_every_public_function_of_a_class_is_in_its_class_for_a_reason(cls):
    """Methods that are not self-explanatory have a sentence; those of protocols inherit it."""
    for name, member in vars(cls).items():
        if (
            inspect.isfunction(member)
            and not name.startswith("_")
            and len(inspect.signature(member).parameters) > 1
        ):
            assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'mulligan' has no attribute 'retri'$"):
        mulligan.retri  # noqa: B018


@pytest.mark.parametrize(
    "module",
    sorted(
        str(path.relative_to(Path(mulligan.__file__ or "").parent).with_suffix(""))
        for path in Path(mulligan.__file__ or "").parent.rglob("*.py")
        if path.name != "__main__.py"
    ),
)
def test_every_module_lists_its_names_in_order(module):
    name = "mulligan." + module.replace("/", ".").removesuffix("__init__").rstrip(".")
    name = name.rstrip(".")
    loaded = importlib.import_module(name)
    names = getattr(loaded, "__all__", None)
    if names is None:
        assert module.endswith("__init__")
        return
    assert len(set(names)) == len(names)
    if name != "mulligan":
        assert isinstance(names, tuple)
    for each in names:
        assert hasattr(loaded, each)

"""What must hold for every call, whatever fails: the laws that `soak` watches.

Each law reads a trace, which is what attempts did and when, and the script's own table of what
each failure means. None of them asks the code under test.
"""

from __future__ import annotations

from collections import Counter
from math import inf, isclose
from typing import TYPE_CHECKING

from _scripts import OUTCOMES, Stop

import mulligan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _scripts import Script, Trace

__all__ = ("broken_laws", "differences")

# Virtual time is a float, and loops add to it in another order than plain code.
_EPSILON = 1e-6


def broken_laws(script: Script, trace: Trace) -> Iterator[str]:
    """What `trace` did that no call may do."""
    if not trace.attempts:
        yield "no attempt was made"
        return
    yield from _hints(trace)
    yield from _repeats(script, trace)
    yield from _bounds(script, trace)
    yield from _counts(trace)
    yield from _answer(trace)


def _hints(trace: Trace) -> Iterator[str]:
    for before, after in zip(trace.attempts, trace.attempts[1:], strict=False):
        due = before.ended + before.step.seconds
        if not before.was_cut and after.began < due - _EPSILON:
            yield f"sooner than the hint: attempt at {after.began}, not before {due}"


def _repeats(script: Script, trace: Trace) -> Iterator[str]:
    effects = script.options.get("effects") or trace.policy.effects or "unsafe"
    for attempt in trace.attempts[:-1]:
        outcome = OUTCOMES[attempt.step.outcome]
        if attempt.was_cut or outcome.may_be_applied:
            if effects == "unsafe":
                yield f"unsafe, maybe applied, and repeated: {attempt.step.outcome}"
        elif outcome.is_final or attempt.step.outcome == "ok":
            yield f"final, and repeated: {attempt.step.outcome}"


def _bounds(script: Script, trace: Trace) -> Iterator[str]:
    policy, attempts, waits = trace.policy, trace.attempts, trace.waits
    deadline, budget = policy.deadline or inf, inf if policy.budget is None else policy.budget
    if script.task is not None:
        budget, deadline = min(budget, script.task[0]), min(deadline, script.task[1])
    first_failed = attempts[0].ended
    for attempt in attempts[1:]:
        if attempt.began > deadline + _EPSILON:
            yield f"attempt at {attempt.began}, past the deadline {deadline}"
        if attempt.began - first_failed > policy.bound + _EPSILON:
            yield f"attempt {attempt.began - first_failed} after the first failure"
    if script.suspends and trace.ended > deadline + _EPSILON:
        yield f"ended at {trace.ended}, past the deadline {deadline}"
    if len(waits) != len(attempts) - 1:
        yield f"{len(waits)} waits for {len(attempts)} attempts"
    if trace.ended > attempts[-1].ended + _EPSILON:
        yield "waited after the last attempt"
    if waits and max(waits) > policy.in_place + _EPSILON:
        yield f"slept {max(waits)}, in place {policy.in_place}"
    # Attempts after the first count as well; the last one had not ended when the last wait began.
    spent = sum(waits) + sum(each.ended - each.began for each in attempts[1:-1])
    if waits and spent > budget + _EPSILON:
        yield f"spent {spent} of a budget of {budget}"


def _counts(trace: Trace) -> Iterator[str]:
    for kind, count in Counter(kind for kind, _, _ in trace.failures).items():
        rule = trace.policy.rules.get(mulligan.Kind(kind))
        if rule is not None and rule.attempts is not None and count > rule.attempts:
            yield f"{count} attempts ended with {kind}; {rule.attempts} may"


def _answer(trace: Trace) -> Iterator[str]:
    last, error = trace.attempts[-1], trace.error
    if error is None:
        if last.step.outcome != "ok" or trace.answer != len(trace.attempts):
            yield f"answered {trace.answer!r} after {last.step.outcome}"
        return
    if last.was_cut:
        # The last real error, or our own if there was none (E-D3).
        real = [each.error for each in trace.attempts if each.error is not None]
        if not isinstance(error, TimeoutError) and (not real or error is not real[-1]):
            yield f"cut, and raised {error!r}"
    elif error is not last.error:
        yield f"raised {error!r}, not the last error {last.error!r}"
    if isinstance(error, Stop):
        return
    story = mulligan.story(error)
    if story is None:
        yield f"{error!r} has no story"
    elif story.attempts != len(trace.attempts):
        yield f"the story tells of {story.attempts} attempts; {len(trace.attempts)} were made"


def differences(one: Trace, other: Trace) -> Iterator[str]:
    """Where two drivers made different things of one script."""
    for name in ("attempts", "waits", "failures"):
        if len(getattr(one, name)) != len(getattr(other, name)):
            yield f"{name}: {len(getattr(one, name))} and {len(getattr(other, name))}"
            return
    for a, b in zip(one.attempts, other.attempts, strict=True):
        if not (_near(a.began, b.began) and _near(a.ended, b.ended) and a.was_cut == b.was_cut):
            yield f"attempts: {a.began}-{a.ended} and {b.began}-{b.ended}"
    if not all(map(_near, one.waits, other.waits)):
        yield f"waits: {one.waits} and {other.waits}"
    for left, right in zip(one.failures, other.failures, strict=True):
        if left[:2] != right[:2] or not _near(left[2] or 0.0, right[2] or 0.0):
            yield f"decisions: {left} and {right}"
    if _ending(one) != _ending(other):
        yield f"endings: {_ending(one)} and {_ending(other)}"


def _near(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-9, abs_tol=_EPSILON)


def _ending(trace: Trace) -> tuple[object, ...]:
    if trace.error is None:
        return ("answer", trace.answer)
    story = mulligan.story(trace.error)
    return (type(trace.error).__name__, None if story is None else story.ending)

"""Puts the end of one tool call into a `ToolResult`, in the words of the advice table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..calls.clock import world
from ..calls.notes import story
from ..core.duration import duration_text, moment_text
from ..core.failure import Effects, Kind
from ..core.redaction import presentable
from ..errors import CircuitOpen, KeyReused, LimitReached, MulliganError
from .advice import ADVICE, Situation, situation_of
from .definition import jsonable
from .execution import LeftInDoubt
from .results import ToolResult, failure_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.failure import Failure
    from ..core.story import Story
    from .definition import ToolDefinition
    from .execution import ToolAttempts
    from .repeats import Repeats
    from .toolbox import Toolbox

__all__ = ("ToolReport",)

# How a call ended, where a model should know more than how often it was tried.
_ENDED = {
    "budget": "the time for retries is used up",
    "deadline": "the time for retries is used up",
    "tokens": "too many calls to this service fail at present",
    "refused": "the service is known to be down",
}

_NAMED = 60  # characters of fields and tools that an advice names


class ToolReport:
    """The results of one tool call; `name` and `args` are as the model wrote them.

    `tool` is None if there is none of that name.
    """

    def __init__(
        self, box: Toolbox, name: str, call_id: str, args: object, tool: ToolDefinition | None
    ) -> None:
        self._box, self._name, self._call_id, self._args = box, name, call_id, args
        self._tool = tool

    def succeeded(self, value: Any, attempts: int, key: str) -> ToolResult:
        """The tool returned `value`."""
        try:
            text = value if isinstance(value, str) else _text(value)
            text = text.encode(errors="replace").decode()  # no API takes half a surrogate pair
        except Exception:  # noqa: BLE001 -- whatever a foreign object raises when it is looked at
            kind = type(value).__name__
            said = f"its result, a {kind}, cannot be written as JSON"
            return self.failed(Situation.UNREADABLE, said, value=value, attempts=attempts, key=key)
        return ToolResult(
            tool=self._name,
            call_id=self._call_id,
            text=text,
            is_error=False,
            value=value,
            attempts=attempts,
            key=key,
            answered_by=self._name,
        )

    def leaves_doubt(self, error: Exception, attempts: ToolAttempts) -> bool:
        """Whether the call that ended with `error` may have been applied."""
        has_effect = self._tool is None or self._tool.effects in (Effects.KEYED, Effects.UNSAFE)
        return isinstance(error, LeftInDoubt) or (has_effect and attempts.is_in_doubt)

    def told(
        self,
        error: Exception,
        attempts: ToolAttempts,
        *,
        key: str,
        count: int,
        repeats: Repeats,
    ) -> ToolResult:
        """The call ended with `error`."""
        is_ours = isinstance(error, MulliganError) and attempts.count == 0
        failure, tale = None if is_ours else attempts.read(error), story(error)
        said = ""
        fields: tuple[tuple[str, str], ...] = ()
        if self.leaves_doubt(error, attempts):
            is_keyed = self._tool is not None and self._tool.effects is Effects.KEYED
            situation = Situation.MAYBE_APPLIED_KEYED if is_keyed else Situation.MAYBE_APPLIED
            said = str(error) if isinstance(error, LeftInDoubt) else ""
        elif is_ours and isinstance(error, KeyReused):
            situation, said = Situation.KEY_REUSED, self._reused()
        elif isinstance(error, CircuitOpen):
            situation, said = Situation.CIRCUIT_OPEN, error.because
        elif isinstance(error, LimitReached):
            situation, said = Situation.LIMIT, error.because
        elif is_ours:
            situation, said = Situation.NOT_RUN, str(error)
        else:
            situation = Situation.BUG if failure is None else situation_of(failure)
        if failure is not None and not said:
            said, fields = failure.message, failure.fields
        return self.failed(
            situation,
            said,
            label=_label(failure, error),
            fields=fields,
            tried=_tried(tale, attempts.count),
            retry_at=_retry_at(error, tale),
            error=error,
            failure=failure,
            story=tale,
            attempts=attempts.count,
            key=key,
            count=count,
            repeats=repeats,
        )

    def stuck(self, count: int) -> ToolResult:
        """The same call has failed `count` times and was not made again."""
        return self.failed(Situation.STUCK, "the call was not made", count=count)

    def failed(
        self,
        situation: Situation,
        said: str,
        *,
        label: str = "",
        fields: Sequence[tuple[str, str]] = (),
        tried: str = "",
        retry_at: float | None = None,
        count: int = 0,
        repeats: Repeats | None = None,
        **facts: Any,
    ) -> ToolResult:
        """The call failed, for a reason that the table has a row for.

        `said` is the original message, `label` the status or the kind of failure, `count` how often
        the same call has failed in a row; `facts` are further fields of the result.
        """
        action, text = ADVICE[situation]
        if repeats is not None and repeats.is_repeated(count):
            text += " " + ADVICE[Situation.REPEATED].text
            if action == "use_another_tool":
                action = ADVICE[Situation.REPEATED].action
        advice = text.format(
            tool=presentable(self._name, _NAMED),
            fields=presentable(", ".join(name for name, _ in fields), _NAMED) or "the arguments",
            when=_when(retry_at),
            reads=presentable(self._box.reads_for(self._tool), 3 * _NAMED),
            other=presentable(self._box.other_than(self._tool), 3 * _NAMED),
            count=count,
        )
        words = failure_text(
            headline=f"{self._name} failed" + (f": {label}" if label else ""),
            said=said,
            arguments=_shown(self._args),
            fields=fields,
            tried=tried,
            advice=advice,
        )
        return ToolResult(
            tool=self._name,
            call_id=self._call_id,
            text=words,
            is_error=True,
            action=action,
            retry_at=retry_at,
            **facts,
        )

    def _reused(self) -> str:
        named = "" if self._tool is None else ", ".join(self._tool.key)
        what = f"this {named}" if named else f"the call id {self._call_id!r}"
        return f"{what} stands for an earlier call with other arguments"


def _label(failure: Failure | None, error: Exception) -> str:
    if failure is None or failure.kind is Kind.UNKNOWN:
        return "" if isinstance(error, MulliganError) else type(error).__name__
    return str(failure.kind) if failure.status is None else f"{failure.status} ({failure.kind})"


def _tried(tale: Story | None, attempts: int) -> str:
    if attempts == 0:
        return ""
    text = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    if tale is None:
        return text
    if tale.waited:
        text += f", {duration_text(tale.waited)} of waiting"
    why = _ENDED.get(tale.ending)
    return f"{text}; {why}" if why else text


def _retry_at(error: Exception, tale: Story | None) -> float | None:
    if isinstance(error, LimitReached):
        return error.until
    if isinstance(error, CircuitOpen):
        at: float = world().clock.wall() + error.retry_in
        return at
    return None if tale is None else tale.retry_at


def _when(retry_at: float | None) -> str:
    if retry_at is None:
        return "some time has passed"
    left = max(retry_at - world().clock.wall(), 0.0)
    return f"{moment_text(retry_at)} (in {duration_text(left)})"


def _shown(args: object) -> str:
    """The arguments as text; whatever they are, and however long."""
    if isinstance(args, str):
        return args[:5000]
    try:
        return json.dumps(jsonable(args), ensure_ascii=False)[:5000]
    except Exception:  # noqa: BLE001 -- for a model to read; what cannot be written is left out
        return ""


def _text(value: Any) -> str:
    if value is None:
        return "done"
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)

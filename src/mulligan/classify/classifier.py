"""Classifier: the built-in rules, extended by the caller's own.

A classifier is immutable: `adding` makes a new one, so that the rules of one guard never change
those of another. Asked in this order: predicates (the last added first), types, codes, then the
built-in rules. An explicit statement of the server (`x-should-retry`) overrides all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from ..core.failure import Failure, Kind, Reach
from ..core.record import record
from ..errors import SettingError
from .exceptions import classify_exception
from .http import classify_response, judge_response

__all__ = ("Classifier", "Judgement", "Predicate", "classifier")

Judgement = Failure | Kind | str | None
"""What the caller says about an error: all of it, its kind, or nothing."""

Predicate = Callable[[BaseException], Judgement]

# What a kind implies about how far the call came, where nothing else is known.
_NOT_ANSWERED = {
    Kind.NETWORK: Reach.MAYBE_APPLIED,
    Kind.TIMEOUT: Reach.MAYBE_APPLIED,
    Kind.UNKNOWN: Reach.MAYBE_APPLIED,
    Kind.CIRCUIT_OPEN: Reach.NEVER_SENT,
}


@record(kw_only=True)
class Classifier:
    """Reads errors and answers; `classifier` is the one without additions.

    Args:
        types: Exception classes with their kind, or a function from the error to a judgement.
            A subclass counts as its nearest class.
        codes: Application codes with their kind (R-C16, R-C17), in any case.
        predicates: Functions from an error to a judgement, or None where they have none.
    """

    types: Mapping[type[BaseException], Kind | Predicate] = field(
        default_factory=lambda: MappingProxyType({})
    )
    codes: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))
    predicates: tuple[Predicate, ...] = ()

    def adding(
        self,
        *,
        types: Mapping[type[BaseException], Kind | str | Predicate] | None = None,
        codes: Mapping[str, Kind | str] | None = None,
        predicate: Predicate | None = None,
    ) -> Classifier:
        """A new classifier that knows this, too; what is added goes before what was there."""
        return Classifier(
            types=MappingProxyType({**self.types, **_checked_types(types or {})}),
            codes=MappingProxyType({**self.codes, **_checked_codes(codes or {})}),
            predicates=self.predicates if predicate is None else (predicate, *self.predicates),
        )

    def classify(self, error: BaseException, *, now: float) -> Failure:
        """What went wrong; never raises. `now` is the wall clock in epoch seconds."""
        failure = classify_exception(error, now=now, codes=self.codes or None)
        if not self.predicates and not self.types:
            return failure
        broken = ""
        for name, ask in self._asked(error):
            try:
                judged = _applied(ask(error), failure, name)
            except Exception as mistake:  # noqa: BLE001 -- E-G8: never hides the caller's error
                broken += f"; {name} raised {type(mistake).__name__} and was not heard"
                continue
            if judged is not None:
                return replace(judged, because=judged.because + broken) if broken else judged
        return replace(failure, because=failure.because + broken) if broken else failure

    def classify_answer(
        self, status: int | None, headers: object = None, body: object = None, *, now: float
    ) -> Failure | None:
        """The failure in an HTTP answer, or None; see `http.classify_response`."""
        return classify_response(status, headers, body, now=now, codes=self.codes or None)

    def judge(self, result: object, *, now: float | None = None) -> Failure | None:
        """The failure in a response object, or None; see `http.judge_response`."""
        return judge_response(result, now=now, codes=self.codes or None)

    def _asked(self, error: BaseException) -> list[tuple[str, Predicate]]:
        asked = [(f"predicate {_name(ask)}", ask) for ask in self.predicates]
        for cls in type(error).__mro__:
            if cls in self.types:
                said = self.types[cls]
                ask = _always(said) if isinstance(said, Kind) else said
                asked.append((f"type {cls.__name__}", ask))
                break
        return asked


classifier = Classifier()


def _always(kind: Kind) -> Predicate:
    return lambda _: kind


def _applied(judged: Judgement, failure: Failure, by: str) -> Failure | None:
    if judged is None:
        return None
    if isinstance(judged, Failure):
        return judged.cleaned()
    kind = Kind.of(judged, by)
    reach = failure.reach
    if failure.kind is Kind.UNKNOWN:
        reach = _NOT_ANSWERED.get(kind, Reach.ANSWERED)
    because = by if failure.is_retriable is None else f"{by}; {failure.because}"
    return replace(failure, kind=kind, reach=reach, because=because)


def _checked_types(
    types: Mapping[Any, Any],
) -> dict[type[BaseException], Kind | Predicate]:
    checked: dict[type[BaseException], Kind | Predicate] = {}
    for cls, said in types.items():
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise SettingError(f"types needs exception classes as keys; got {cls!r}")
        if isinstance(said, str):
            checked[cls] = Kind.of(said, f"types[{cls.__name__}]")
        elif callable(said):
            checked[cls] = said  # pyright: ignore[reportArgumentType] -- what it returns is checked
        else:
            raise SettingError(f"types[{cls.__name__}] needs a kind or a function; got {said!r}")
    return checked


def _checked_codes(codes: Mapping[Any, Any]) -> dict[str, Kind]:
    checked: dict[str, Kind] = {}
    for code, kind in codes.items():
        if not (isinstance(code, str) and code):
            raise SettingError(f"codes needs words as keys; got {code!r}")
        checked[code.lower()] = Kind.of(kind, f"codes[{code!r}]")
    return checked


def _name(ask: object) -> str:
    name = getattr(ask, "__name__", None)
    return name if isinstance(name, str) else type(ask).__name__

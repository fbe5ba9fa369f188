"""The failure in an exception.

Evidence on the exception (status, headers, body) is read first, its class second, the exception it
was raised from third. An object that misbehaves while it is read gives `unknown`, never an error.

    error ──status, headers, body──▶ http
      ├──known class──▶ its kind; what it wraps may tell the reach
      ├──a group──▶ the worst of its members
      └──unknown──▶ __cause__, else __context__, else unknown
"""

from __future__ import annotations

import builtins
import errno as numbers
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..core.failure import Failure, Family, Kind, Reach
from ..core.hint import Hint
from ..core.redaction import presentable
from ..errors import CircuitOpen, DeadlinePassed, FailedAnswer, LimitReached, MulliganError
from .bodies import NOTHING
from .http import judge_evidence, judge_words
from .known_exceptions import BY_ERRNO, CIRCLE, CLIENT_ROOTS, GARBLED, SDK_ROOTS, Known, find
from .objects import HttpEvidence, careful_get, evidence_in
from .vocabulary import CODES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("classify_exception", "codes_of")

# Links of a chain that are followed; a longer one is a circle or a mistake.
_MOST_LINKS = 16
_MOST_MEMBERS = 64
_MOST_TRAITS = 1024
# EAI_AGAIN, the resolver's "not now": Linux, then macOS. `errno` does not list them.
_EAI_AGAIN = (-3, 2)
# A mistake in the program is not excused by what was being handled when it happened.
_MISTAKES = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError),
    *(LookupError, MemoryError, NameError, NotImplementedError, RecursionError, SyntaxError),
    *(TypeError, ValueError),
)


class _Trait(NamedTuple):
    """What a class of exceptions is, looked up once."""

    name: str
    known: Known | None
    is_sdk: bool
    is_rpc: bool
    is_flattening: bool  # litellm: a lost connection comes out as a 500
    is_plain: bool  # a class of Python itself carries no status
    is_group: bool
    is_os: bool
    is_own: bool


_traits: dict[type, _Trait] = {}


def classify_exception(
    error: BaseException, *, now: float, codes: Mapping[str, Kind] | None = None
) -> Failure:
    """What went wrong, read from an exception. Never raises; at worst the kind is `unknown`.

    Args:
        error: Any exception of any library.
        now: Our wall clock in epoch seconds.
        codes: The caller's own codes in lower case; they win over what is built in.
    """
    try:
        return _Reader(now, codes).read(error)
    except Exception as strange:  # noqa: BLE001 -- an error must never be hidden by reading it
        name = type(error).__name__
        return Failure(
            kind=Kind.UNKNOWN,
            message=name,
            reach=Reach.MAYBE_APPLIED,
            because=f"{name} could not be read ({type(strange).__name__})",
        )


def codes_of(error: BaseException) -> tuple[str, ...]:
    """The codes that `error` and its body carry, in lower case, the most specific last."""
    return evidence_in(error, is_known=_trait(type(error)).is_sdk).body.codes


def _trait(cls: type) -> _Trait:
    trait = _traits.get(cls)
    if trait is None:
        roots = {base.__module__.partition(".")[0] for base in cls.__mro__}
        trait = _Trait(
            name=cls.__name__ if cls.__module__ == "builtins" else _address(cls),
            known=find(cls),
            is_sdk=bool(roots & SDK_ROOTS),
            is_rpc="grpc" in roots,
            is_flattening="litellm" in roots,
            # By identity: a class made by exec() says that it comes from builtins, too.
            is_plain=vars(builtins).get(cls.__name__) is cls,
            is_group=issubclass(cls, BaseExceptionGroup),
            is_os=issubclass(cls, OSError),
            is_own=issubclass(cls, MulliganError),
        )
        if len(_traits) >= _MOST_TRAITS:
            _traits.clear()  # classes made at run time: forget rather than grow
        _traits[cls] = trait
    return trait


def _address(cls: type) -> str:
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


class _Reader:
    """One reading of one exception, with what it has seen on the way."""

    __slots__ = ("codes", "now", "seen")

    def __init__(self, now: float, codes: Mapping[str, Kind] | None) -> None:
        self.now = now
        self.codes = codes
        self.seen: set[int] | None = None  # most errors are read without looking behind them

    def read(self, error: BaseException) -> Failure:
        trait = _trait(type(error))
        if trait.is_own:
            return _own(error, self.now)
        if trait.is_group:
            return self._group(error)
        if not trait.is_plain:
            failure = self._by_evidence(error, trait)
            if failure is not None:
                return failure
        known = trait.known
        if known is None and trait.is_os:
            known = _by_errno(error, trait)
        if known is None and trait.name == "json.JSONDecodeError" and _is_of_a_client(error):
            known = GARBLED
        if known is not None:
            return self._closer(error, _of_class(error, trait, known))
        return self._behind(error, trait)

    def _by_evidence(self, error: BaseException, trait: _Trait) -> Failure | None:
        """The failure in what the exception carries, or None where that says nothing."""
        if trait.is_rpc:
            from .grpc import classify_rpc

            failure = classify_rpc(error, now=self.now, codes=self.codes)
            if failure is not None:
                return failure
        evidence = evidence_in(error, is_known=trait.is_sdk)
        status, headers, body, text = evidence
        if (status is None or status < 400) and not self._is_telling(evidence, trait):
            return None
        if not body.message and not text:
            text = _words(error)
        if headers or body is not NOTHING or self.codes is not None:
            failure = judge_evidence(
                status, headers, body, text=text, now=self.now, codes=self.codes
            )
        else:
            failure = judge_words(status, text, now=self.now)
        if status is None and failure.kind is Kind.UNKNOWN:
            return None
        if not failure.message:
            failure = replace(failure, message=trait.name)
        known = trait.known
        if known is not None and known.wins and not self._is_own_code(failure):
            return replace(
                failure,
                kind=known.kind,
                reach=known.reach,
                is_retriable=known.is_retriable
                if failure.is_retriable is None
                else failure.is_retriable,
                because=trait.name,
            )
        if trait.is_flattening and status is not None and status >= 500:
            return replace(failure, reach=Reach.MAYBE_APPLIED)
        return failure

    def _is_telling(self, evidence: HttpEvidence, trait: _Trait) -> bool:
        """Whether evidence without a status of failure is enough: an error in a 200, a code."""
        status, _, body, text = evidence
        codes = body.codes
        if status is None and trait.known is not None and trait.known.kind.family is Family.NETWORK:
            return False  # a connection error has nothing to quote
        if codes and (
            any(code in CODES for code in codes)
            or (self.codes is not None and any(code in self.codes for code in codes))
        ):
            return True
        return body.is_error or (trait.is_sdk and bool(codes or body.message or text))

    def _is_own_code(self, failure: Failure) -> bool:
        return bool(self.codes) and failure.because.startswith("code ")

    def _closer(self, error: BaseException, failure: Failure) -> Failure:
        """`failure` of a known class, corrected by what the exception wraps."""
        inner = self._wrapped(error)
        if inner is None:
            return failure
        found = self.read(inner)
        is_mistake = found.kind is Kind.CLIENT and found.is_retriable is False
        if is_mistake or (failure.kind is Kind.CLIENT and found.family is Family.NETWORK):
            # An untrusted certificate behind a failed connection; a lost line behind a TLS error.
            reach = failure.reach if failure.reach is Reach.NEVER_SENT else found.reach
            return replace(found, message=failure.message, reach=reach)
        if found.family is not Family.NETWORK:
            return failure
        reach = found.reach if found.reach is Reach.NEVER_SENT else failure.reach
        return replace(
            failure,
            kind=found.kind if failure.kind is Kind.NETWORK else failure.kind,
            reach=reach,
            code=failure.code or found.code,
        )

    def _wrapped(self, error: BaseException) -> BaseException | None:
        """What `error` says it was made of, not what merely happened before it."""
        if error.__cause__ is not None and self._is_new(error.__cause__):
            return error.__cause__
        for place in (careful_get(error, "reason"), *error.args[:2]):
            if isinstance(place, BaseException) and self._is_new(place):
                return place
        return None

    def _behind(self, error: BaseException, trait: _Trait) -> Failure:
        """An exception of an unknown class: read the one that it was raised from."""
        behind = error.__cause__
        if not (behind is not None or error.__suppress_context__ or isinstance(error, _MISTAKES)):
            behind = error.__context__
        # KeyboardInterrupt and the like behind an error are not failures.
        if isinstance(behind, Exception) and self._is_new(behind):
            found = self.read(behind)
            if found.kind is not Kind.UNKNOWN:
                # A handler ran between the two: who knows what it has done.
                because = f"{found.because}, behind {trait.name}"
                return replace(found, reach=Reach.MAYBE_APPLIED, because=because)
        return Failure(
            kind=Kind.UNKNOWN,
            message=presentable(_words(error)) or trait.name,
            reach=Reach.MAYBE_APPLIED,
            because=f"{trait.name} is not known",
        )

    def _group(self, group: BaseException) -> Failure:
        """The worst member speaks for the group.

        Worst is one that must not be repeated, then the one with the longest wait. What else ran
        in the group may have been applied, whatever happened to the ones that are reported.
        """
        members = careful_get(group, "exceptions") or ()
        found: list[Failure] = []
        for member in members[:_MOST_MEMBERS]:
            if not isinstance(member, Exception):
                return self._behind(group, _trait(type(group)))
            if self._is_new(member):
                found.append(self.read(member))
        if not found:
            return self._behind(group, _trait(type(group)))
        worst = max(found, key=_badness)
        hint = max((one.hint for one in found if one.hint), key=lambda h: h.floor, default=None)
        count = f", the worst of {len(found)}" if len(found) > 1 else ""
        because = worst.because + count
        return replace(worst, reach=Reach.MAYBE_APPLIED, hint=hint, because=because)

    def _is_new(self, error: BaseException) -> bool:
        """Whether `error` is seen for the first time (E-G6)."""
        if self.seen is None:
            self.seen = set()
        if id(error) in self.seen or len(self.seen) >= _MOST_LINKS + _MOST_MEMBERS:
            return False
        self.seen.add(id(error))
        return True


_FAMILIES = (Family.NETWORK, Family.SERVER, Family.RATE_LIMIT, Family.CLIENT, Family.UNKNOWN)


def _badness(failure: Failure) -> tuple[bool, int, float]:
    return (
        failure.is_retriable is False,
        _FAMILIES.index(failure.family),
        0.0 if failure.hint is None else failure.hint.floor,
    )


def _own(error: BaseException, now: float) -> Failure:
    """Mulligan's own exceptions, of a guard further in."""
    if isinstance(error, FailedAnswer):
        return error.failure
    kind, hint = Kind.UNKNOWN, None
    if isinstance(error, DeadlinePassed):
        kind = Kind.TIMEOUT
    if isinstance(error, CircuitOpen):
        kind, hint = Kind.CIRCUIT_OPEN, Hint.after(error.retry_in, source="breaker")
    elif isinstance(error, LimitReached):
        wait = error.until - now
        kind = Kind.QUOTA if wait >= 3600 else Kind.RATE_LIMIT
        hint = Hint.after(wait, at=error.until, source="gate")
    return Failure(
        kind=kind,
        message=presentable(_words(error)),
        reach=Reach.NEVER_SENT,
        hint=hint,
        because=type(error).__name__,
    )


def _of_class(error: BaseException, trait: _Trait, known: Known) -> Failure:
    number = careful_get(error, "errno") if trait.is_os else None
    words = presentable(_words(error))
    if trait.name == "urllib3.MaxRetryError" and "too many redirects" in words:
        known = CIRCLE  # urllib3 has no class for it
    return Failure(
        kind=known.kind,
        message=words or trait.name,
        reach=known.reach,
        code=numbers.errorcode.get(number) if isinstance(number, int) else None,
        is_retriable=known.is_retriable,
        because=trait.name,
    )


def _is_of_a_client(error: BaseException) -> bool:
    """Whether a client library raised `error`: what it could not decode was a server's answer.

    The same error of the caller's own `json.loads` is about anything.
    """
    traceback = error.__traceback__
    while traceback is not None:
        root = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if root in CLIENT_ROOTS:
            return True
        traceback = traceback.tb_next
    return False


_DNS = Known(Kind.NETWORK, Reach.NEVER_SENT)


def _by_errno(error: BaseException, trait: _Trait) -> Known | None:
    number = careful_get(error, "errno")
    if not isinstance(number, int):
        return None
    if trait.name == "socket.gaierror":
        return _DNS if number in _EAI_AGAIN else None
    return BY_ERRNO.get(number)


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 -- a __str__ that raises says nothing
        return ""

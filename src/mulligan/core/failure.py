"""Failure: what went wrong, in one vocabulary for all vendors.

A failure is evidence that has been read once. The code that decides what happens next looks at
the kind, the reach and the hint, never again at the status, the headers or the words.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ..errors import SettingError
from .record import record
from .redaction import presentable
from .suggestions import nearest

if TYPE_CHECKING:
    from .hint import Hint

__all__ = ("Effects", "Failure", "Family", "Kind", "Reach", "Retryability")


class Family(StrEnum):
    """Kinds of failure, by who knows when the call will succeed again (R-C3)."""

    NETWORK = "network"  # no one: it may pass by itself, and the outcome is unknown
    RATE_LIMIT = "rate_limit"  # the server
    SERVER = "server"  # no one, but the server has answered
    CLIENT = "client"  # the caller: the same call fails again
    UNKNOWN = "unknown"  # not understood, hence not repeated


class Retryability(StrEnum):
    """Whether and how a failure may be retried, in three classes (R-C6)."""

    RETRYABLE = "retryable"
    RETRYABLE_WITH_BACKOFF = "retryable_with_backoff"
    NON_RETRYABLE = "non_retryable"


class Kind(StrEnum):
    """What failed. Each kind has one family and one `Retryability`."""

    RATE_LIMIT = "rate_limit"  # a short window
    QUOTA = "quota"  # a plan's window: it names or implies a reset
    BILLING = "billing"  # no reset: waiting is useless
    OVERLOADED = "overloaded"  # 529, 503 for lack of capacity
    SERVER = "server"
    NETWORK = "network"
    TIMEOUT = "timeout"
    AUTH = "auth"
    CONTEXT_LENGTH = "context_length"
    CONTENT_POLICY = "content_policy"
    CLIENT = "client"
    CONDITIONAL = "conditional"  # not now; later, if something changes
    BAD_ANSWER = "bad_answer"  # truncated, empty, refused, off-schema
    CIRCUIT_OPEN = "circuit_open"
    UNKNOWN = "unknown"

    # Enum's own hash is a Python function; kinds are the keys of every table on the failure path.
    __hash__ = str.__hash__

    @classmethod
    def of(cls, word: object, name: str) -> Kind:
        """The kind called `word`, or a SettingError that names the parameter and the nearest."""
        try:
            return cls(word)  # type: ignore[arg-type]
        except ValueError:
            raise SettingError(
                f"{name} needs a kind of failure; got {word!r}, {nearest(str(word), cls)}"
            ) from None

    family: Family
    retryability: Retryability
    is_limit: bool  # whether time alone ends it, and the server knows when


_FAMILY = {
    Kind.RATE_LIMIT: Family.RATE_LIMIT,
    Kind.QUOTA: Family.RATE_LIMIT,
    Kind.BILLING: Family.CLIENT,
    Kind.OVERLOADED: Family.SERVER,
    Kind.SERVER: Family.SERVER,
    Kind.NETWORK: Family.NETWORK,
    Kind.TIMEOUT: Family.NETWORK,
    Kind.AUTH: Family.CLIENT,
    Kind.CONTEXT_LENGTH: Family.CLIENT,
    Kind.CONTENT_POLICY: Family.CLIENT,
    Kind.CLIENT: Family.CLIENT,
    Kind.CONDITIONAL: Family.CLIENT,
    Kind.BAD_ANSWER: Family.SERVER,
    Kind.CIRCUIT_OPEN: Family.CLIENT,  # not retriable: the caller must do something else (R-K6)
    Kind.UNKNOWN: Family.UNKNOWN,
}

_RETRYABILITY_OF = {
    Family.NETWORK: Retryability.RETRYABLE,
    Family.RATE_LIMIT: Retryability.RETRYABLE_WITH_BACKOFF,
    Family.SERVER: Retryability.RETRYABLE,
    Family.CLIENT: Retryability.NON_RETRYABLE,
    Family.UNKNOWN: Retryability.NON_RETRYABLE,
}

for _kind, _family in _FAMILY.items():
    _kind.family, _kind.retryability = _family, _RETRYABILITY_OF[_family]
    _kind.is_limit = _family is Family.RATE_LIMIT


class Reach(StrEnum):
    """How far the call came. `MAYBE_APPLIED` is what makes a blind repeat dangerous."""

    NEVER_SENT = "never_sent"  # refused, no such host, connect timeout
    MAYBE_APPLIED = "maybe_applied"  # a lost reply, a crash (500), an answer from a gateway
    ANSWERED = "answered"  # the server refused it: a limit, no capacity, a mistake of the caller


class Effects(StrEnum):
    """What happens if the call is made twice."""

    READ = "read"  # nothing: it only looks
    IDEMPOTENT = "idempotent"  # the same as once, or a harmless second answer
    KEYED = "keyed"  # the same as once, because the server recognises its key
    UNSAFE = "unsafe"  # a second effect: an e-mail, a payment, a row

    @classmethod
    def of(cls, word: object) -> Effects:
        """The effects called `word`, or a SettingError that names them all."""
        try:
            return cls(word)  # type: ignore[arg-type]
        except ValueError:
            raise SettingError(f"effects needs one of {', '.join(cls)}; got {word!r}") from None

    @property
    def is_safe_to_repeat(self) -> bool:
        return self is not Effects.UNSAFE


@record(kw_only=True)
class Failure:
    """One failure, read once.

    Args:
        kind: What failed.
        message: What was said, cleaned and masked (`text.presentable`); never the raw words.
        reach: How far the call came.
        hint: What the server said about when; None if it said nothing usable.
        status: The HTTP status, or the gRPC one mapped to HTTP, where there was one.
        code: The vendor's own word for it, ``insufficient_quota``, ``ECONNRESET``.
        is_retriable: An explicit statement that overrides the kind, both ways; None where
            there was none.
        because: What decided the kind, in a clause: ``status 503``, ``body says is_retriable``.
        fields: For a 422: the failing fields, each with what is wrong about it (R-C12).
        model: For a limit: the model or the family of models that it is about, as it was stated;
            empty where it names none, and is about the whole account.
    """

    kind: Kind
    message: str = ""
    reach: Reach = Reach.ANSWERED
    hint: Hint | None = None
    status: int | None = None
    code: str | None = None
    is_retriable: bool | None = None
    because: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    model: str = ""

    def __post_init__(self) -> None:
        if self.kind.__class__ is not Kind:
            object.__setattr__(self, "kind", Kind.of(self.kind, "Failure.kind"))

    @property
    def family(self) -> Family:
        return self.kind.family

    @property
    def retryability(self) -> Retryability:
        """Its class, an explicit statement included."""
        if self.is_retriable is None:
            return self.kind.retryability
        if not self.is_retriable:
            return Retryability.NON_RETRYABLE
        is_limit = self.kind.is_limit
        return Retryability.RETRYABLE_WITH_BACKOFF if is_limit else Retryability.RETRYABLE

    def cleaned(self) -> Failure:
        """This failure with all its words fit to be stored: for those that users make."""
        return replace(
            self,
            message=presentable(self.message),
            code=None if self.code is None else presentable(self.code, 100),
            because=presentable(self.because),
            fields=tuple((presentable(name, 100), presentable(said)) for name, said in self.fields),
            model=presentable(self.model, 100),
        )

    def __str__(self) -> str:
        """``429 (rate_limit): too many requests``, as it stands in notes and logs."""
        label = str(self.kind) if self.status is None else f"{self.status} ({self.kind})"
        return f"{label}: {self.message}" if self.message else label

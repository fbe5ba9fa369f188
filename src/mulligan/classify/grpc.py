"""The failure in a gRPC error: a status code, details, trailing metadata.

The code is mapped to the HTTP status that Google's own APIs use for it. UNAVAILABLE is ambiguous:
the client reports it for a connection that was never made, the server for lack of capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..core.failure import Failure, Kind, Reach
from ..core.hint import Hint
from ..core.redaction import presentable
from .bodies import Body
from .headers import fold
from .http import judge_evidence
from .objects import careful_get

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("classify_rpc",)


class _Rule(NamedTuple):
    kind: Kind
    status: int
    reach: Reach = Reach.ANSWERED
    is_retriable: bool | None = None


_RULES = {
    "CANCELLED": _Rule(Kind.CLIENT, 499, Reach.MAYBE_APPLIED),
    "UNKNOWN": _Rule(Kind.UNKNOWN, 500, Reach.MAYBE_APPLIED),
    "INVALID_ARGUMENT": _Rule(Kind.CLIENT, 400),
    "DEADLINE_EXCEEDED": _Rule(Kind.TIMEOUT, 504, Reach.MAYBE_APPLIED),
    "NOT_FOUND": _Rule(Kind.CLIENT, 404),
    "ALREADY_EXISTS": _Rule(Kind.CLIENT, 409),
    "PERMISSION_DENIED": _Rule(Kind.AUTH, 403),
    "RESOURCE_EXHAUSTED": _Rule(Kind.RATE_LIMIT, 429),
    "FAILED_PRECONDITION": _Rule(Kind.CONDITIONAL, 400),
    "ABORTED": _Rule(Kind.CONDITIONAL, 409),
    "OUT_OF_RANGE": _Rule(Kind.CLIENT, 400),
    "UNIMPLEMENTED": _Rule(Kind.SERVER, 501, is_retriable=False),
    "INTERNAL": _Rule(Kind.SERVER, 500, Reach.MAYBE_APPLIED),
    "UNAVAILABLE": _Rule(Kind.SERVER, 503, Reach.MAYBE_APPLIED),
    "DATA_LOSS": _Rule(Kind.SERVER, 500, Reach.MAYBE_APPLIED, is_retriable=False),
    "UNAUTHENTICATED": _Rule(Kind.AUTH, 401),
}
_NEVER_SENT = (
    *("failed to connect", "connection refused", "name resolution", "dns resolution"),
    *("no route to host", "network is unreachable", "connect timeout"),
)
_LOST = ("socket closed", "connection reset", "broken pipe", "goaway", "connection closed")


def classify_rpc(
    error: BaseException, *, now: float, codes: Mapping[str, Kind] | None = None
) -> Failure | None:
    """The failure in a gRPC error, or None where it has no status code."""
    name = careful_get(_called(error, "code"), "name")
    rule = _RULES.get(name) if isinstance(name, str) else None
    if rule is None:
        return None
    details = _called(error, "details")
    words = details if isinstance(details, str) else ""
    # Over HTTP the server says UNAVAILABLE, here the client does, too: no proof of an answer.
    is_proof = name != "UNAVAILABLE" or (codes is not None and "unavailable" in codes)
    metadata = fold(_called(error, "trailing_metadata"))
    said = judge_evidence(
        rule.status,
        metadata,
        Body(message=words, codes=(name.lower(),) if is_proof else ()),
        now=now,
        codes=codes,
    )
    kind, reach = _seen_closer(rule, said, words.lower())
    hint = said.hint or _retry_info(metadata)
    is_settled = said.is_retriable is not None
    return Failure(
        kind=kind,
        message=presentable(words) or name,
        reach=reach,
        hint=hint,
        status=rule.status,
        code=name,
        is_retriable=said.is_retriable if is_settled else rule.is_retriable,
        because=said.because if is_settled else f"gRPC status {name}",
    )


def _seen_closer(rule: _Rule, said: Failure, lowered: str) -> tuple[Kind, Reach]:
    """The rule's kind and reach, unless words, the caller's codes or the push-back know better."""
    if rule.status == 503:
        if any(phrase in lowered for phrase in _NEVER_SENT):
            return Kind.NETWORK, Reach.NEVER_SENT
        if any(phrase in lowered for phrase in _LOST):
            return Kind.NETWORK, Reach.MAYBE_APPLIED
        if said.kind in (Kind.OVERLOADED, Kind.RATE_LIMIT):
            return said.kind, Reach.ANSWERED
    if rule.kind is Kind.RATE_LIMIT or said.because.startswith("code "):
        return said.kind, rule.reach
    return rule.kind, rule.reach


def _called(error: BaseException, name: str) -> object:
    """What the method `name` answers; None where it does not answer."""
    method = careful_get(error, name)
    if not callable(method):
        return None
    try:
        return method()
    except Exception:  # noqa: BLE001 -- an RPC that has not ended has no code yet
        return None


_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def _retry_info(metadata: Mapping[str, str]) -> Hint | None:
    """The delay of a google.rpc.RetryInfo among the packed details of the status.

    Read without protobuf: behind the type's name stands its value, a Duration of two varints.
    """
    _, found, packed = metadata.get("grpc-status-details-bin", "").partition(_RETRY_INFO)
    value = packed[:32].encode("latin-1", "replace")
    # 0x12 and 0x0a are "bytes follow", each with a length below 128.
    if not found or len(value) < 5 or value[0] != 0x12 or value[2] != 0x0A:
        return None
    end = min(4 + value[3], len(value))
    seconds, at = _varint(value, 4, end, tag=0x08)
    nanos, _ = _varint(value, at, end, tag=0x10)
    return Hint.after(seconds + nanos / 1e9, source="google.rpc.RetryInfo")


def _varint(data: bytes, at: int, end: int, *, tag: int) -> tuple[int, int]:
    """The number behind `tag` with the place after it; 0 where the field is left out."""
    if at >= end or data[at] != tag:
        return 0, at
    number = shift = 0
    for place in range(at + 1, end):
        number |= (data[place] & 0x7F) << shift
        if data[place] < 0x80:
            return number, place + 1
        shift += 7
    return 0, end

"""The provider without I/O: a request and the time go in, a delivery comes out.

The service owns everything that changes while the server runs (how far the script has come, what
each client has used, the resource, the ledger) and knows nothing about sockets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING

from .compose import applied, good, refusal, refusal_reason, restated, stated
from .delivery import Act, PlannedResponse, deliver
from .fault_names import LIMIT, OK
from .ledger import LedgerEntry, RequestLedger
from .limits import admit
from .rest import Rest
from .script import RuleState, Turn, roll, take
from .side_requests import (
    anything,
    api_of_refusals,
    is_side_request,
    names_side_requests,
    side_answer,
)
from .vendors import VENDORS
from .vendors.base import ClientRequest, Vendor

if TYPE_CHECKING:
    from .fault_names import Fault
    from .file import FaultSettings
    from .limits import ClientLimits, Meter
    from .rest import Resource
    from .script import Script
    from .wire import Head, HttpRequest

__all__ = ("Handled", "Service")

_TEXT = "This is the fault server speaking: the request has arrived and all is well."
# What clients say about their own retries; shown in the ledger as they said it.
_ATTEMPT_HEADERS = (
    "x-stainless-retry-count",
    "x-attempt",
    "x-retry-count",
    "retry-attempt",
    "amz-sdk-request",
    "grpc-previous-rpc-attempts",
)
_WITHOUT_HEAD = frozenset({"reset", "lost", "refuse", "close", "hang"})
_REST = Rest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What to do about one request."""

    acts: tuple[Act, ...]
    entry: LedgerEntry


class Service:
    """The provider: what `FaultServer` serves, with its settings."""

    def __init__(
        self,
        *,
        script: Script,
        limits: ClientLimits,
        resource: Resource,
        now: float,
        seed: int = 0,
        text: str = _TEXT,
    ) -> None:
        self.ledger = RequestLedger(now)
        self._limits, self._resource, self._seed, self._text = limits, resource, seed, text
        self._answered = 0
        self.set(script)

    def set(self, script: Script, limits: ClientLimits | None = None) -> None:
        """Begin another script, with full accounts; the ledger and what was created stay."""
        self.script = script
        self._limits = self._limits if limits is None else limits
        self._used: dict[str, dict[str, Meter]] = {}  # by client and limit
        self._states: dict[tuple[int, str], RuleState] = {}  # by rule and client
        self.ledger.reopen()

    def change(self, settings: FaultSettings) -> None:
        """Apply the settings of a file; others stay, except that the accounts are reset."""
        self._seed = self._seed if settings.seed is None else settings.seed
        self._text = self._text if settings.text is None else settings.text
        self._resource.change(settings.resources, honours_keys=settings.honours_keys)
        self.set(settings.script or self.script, settings.limits)

    def clear(self, now: float) -> None:
        """Begin another ledger."""
        self.ledger = RequestLedger(now)

    def handle(self, request: HttpRequest, now: float, *, began_at: float | None = None) -> Handled:
        """Decide on a request, carry out what it changes, note it.

        `now` is when its last byte came, in epoch seconds; `began_at` when its first did.
        """
        head, (vendor, asked) = request.head, _whose(request)
        is_rest = vendor is None and self._resource.covers(head.path)
        is_besides = not is_rest and is_side_request(head, vendor, asked)
        api = vendor or (_REST if is_rest else api_of_refusals(head))
        entry = self._entry(request, api.name, asked, now)
        began_at = now if began_at is None else began_at
        is_early = self.ledger.is_closed(entry.client, entry.vendor, began_at, now)
        entry = replace(entry, is_early=is_early)
        rule = self.script.find(method=entry.method, path=entry.path, client=entry.client)
        is_named = rule is not None and names_side_requests(self.script.rules[rule])
        if is_besides and not is_named:
            entry = replace(entry, vendor="other", outcome="aside", is_early=False)
            return self._handled(OK, side_answer(head, vendor, asked), entry, head, now)
        turn = self._turn(rule, entry.client, asked.tokens, now)
        fault = turn.fault
        self._answered += 1  # not the length of the ledger, which may be begun again
        id_ = blake2b(repr((self._seed, self._answered)).encode(), digest_size=8).hexdigest()
        headers = api.headers(id_, turn.admission, now)
        reason = refusal_reason(turn, asked, id_, now)
        answer = refusal(api, fault, reason, headers)
        if is_rest and fault != LIMIT and fault.reaches:
            done = self._resource.apply(
                method=entry.method,
                path=entry.path,
                body=request.json if request.is_readable else None,
                client=entry.client,
                key=entry.key,
                hash_=entry.body_hash,
            )
            entry = replace(entry, effect=done.effect)
            answer = answer or applied(done, fault, headers)
        elif is_besides:
            answer = answer or side_answer(head, vendor, asked)
        elif vendor is not None:
            answer = answer or good(vendor, fault, reason, headers, self._text)
        elif answer is None and not is_rest:
            answer = anything(head)
        # A request that is reset before it reaches the resource needs no answer.
        answer = restated(answer or PlannedResponse(status=200), fault)
        wait = stated(turn, answer, now)
        if wait is not None:
            sent_at = now + (fault.seconds("delay") or 0.0)
            self.ledger.close(entry.client, entry.vendor, sent_at, now + wait)
        return self._handled(fault, answer, replace(entry, outcome=str(fault)), head, now)

    def _turn(self, index: int | None, client: str, tokens: int, now: float) -> Turn:
        """What the request gets by the limits, then by the rule of that index.

        A request that the limits refuse does not reach the script, and uses none of its steps.
        """
        admission = None
        if self._limits.by_name:
            used = self._used.get(client, {})
            admission, self._used[client] = admit(self._limits, used, tokens=tokens, now=now)
            if not admission.is_admitted:
                return Turn(fault=LIMIT, admission=admission)
        if index is None:
            return Turn(fault=OK, admission=admission)
        rule = self.script.rules[index]
        whose = client if rule.client == "*" else ""
        state = self._states.get((index, whose)) or RuleState.of(rule)
        occasion = (self._seed, str(rule), whose, state.asked)
        turn, self._states[index, whose] = take(
            rule, state, now=now, roll=lambda step: roll(*occasion, step)
        )
        return replace(turn, admission=admission)

    def _handled(
        self, fault: Fault, answer: PlannedResponse, entry: LedgerEntry, head: Head, now: float
    ) -> Handled:
        status = None if fault.name in _WITHOUT_HEAD else answer.status
        entry = self.ledger.add(replace(entry, status=status))
        answer = replace(answer, is_bodiless=entry.method == "HEAD", is_chunked=not head.is_old)
        return Handled(acts=deliver(fault, answer, now), entry=entry)

    def _entry(
        self, request: HttpRequest, vendor: str, asked: ClientRequest, now: float
    ) -> LedgerEntry:
        head = request.head
        return LedgerEntry(
            number=0,
            at=now,
            after=now - self.ledger.opened_at,
            client=_client(request),
            method=head.method,
            path=head.path,
            vendor=vendor,
            model=asked.model,
            is_stream=asked.is_stream,
            attempt={name: head.headers[name] for name in _ATTEMPT_HEADERS if name in head.headers},
            key=head.headers.get("idempotency-key", "").strip('"'),
            body_hash=request.hash,
        )


def _whose(request: HttpRequest) -> tuple[Vendor | None, ClientRequest]:
    head, body = request.head, request.json
    for vendor in VENDORS:
        asked = vendor.read(head.method, head.path, head.query, body)
        if asked is not None:
            return vendor, asked
    return None, ClientRequest()


def _client(request: HttpRequest) -> str:
    named = request.head.headers.get("x-client")
    if named:
        return named[:40]
    key = request.key
    if key.startswith("mulligan-"):
        return key.removeprefix("mulligan-")[:40]
    # A real key may be sent here by mistake; it is neither stored nor shown.
    return f"key-{sha256(key.encode()).hexdigest()[:8]}" if key else "anonymous"

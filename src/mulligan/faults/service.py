"""What each request gets: limits, then script, then the vendor's words.

The service owns everything that changes while the server runs (how far the script has come, what
each account has used, the resource, the ledger) and knows nothing about sockets: a request goes in
with the time, a delivery comes out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from .delivery import Act, Answer, deliver
from .ledger import Entry, Ledger
from .limits import Account, Admission, Limits, admit
from .luck import identity, roll
from .menu import Fault
from .rest import Resource, rest_headers, rest_refusal
from .script import RuleState, Script, Turn, take
from .stated import retry_after, stated_wait
from .toolcall import tool_call
from .vendors import VENDORS, Asked, Json, Refusal, Reply, Stream, Trouble, Vendor, sse

if TYPE_CHECKING:
    from .wire import Request

__all__ = ("Handled", "Service")

_TEXT = "This is the fault server speaking: the request has arrived and all is well."
_REFUSALS = frozenset(
    {"overloaded", "plan", "limit", "billing", "context", "model", "policy", "auth"}
)
# What clients say about their own retries; shown in the ledger as they said it.
_ATTEMPT_HEADERS = (
    "x-stainless-retry-count",
    "x-attempt",
    "x-retry-count",
    "retry-attempt",
    "amz-sdk-request",
    "grpc-previous-rpc-attempts",
)
# How long the port stays closed where the script does not say.
_REFUSE = 5.0
_OK = Fault(name="ok")
# What the limits say; not on the menu, since no script can order it.
_LIMIT = Fault(name="limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What to do about one request.

    Args:
        acts: What happens on the connection.
        entry: Its line in the ledger.
        closes_port: Seconds for which nobody can connect.
    """

    acts: tuple[Act, ...]
    entry: Entry
    closes_port: float = 0.0


class Service:
    """The provider.

    Args:
        script: What it does with which request.
        limits: What each client may use.
        seed: The same seed, the same luck.
        text: What it answers where the script does not say.
        resource: The REST collections.
        now: When it opens, in epoch seconds.
    """

    def __init__(
        self,
        *,
        script: Script,
        limits: Limits,
        resource: Resource,
        now: float,
        seed: int = 0,
        text: str = _TEXT,
    ) -> None:
        self.ledger = Ledger(now)
        self._limits, self._resource, self._seed, self._text = limits, resource, seed, text
        self._accounts: dict[str, Account] = {}
        self.set(script)

    @property
    def script(self) -> Script:
        return self._script

    def set(self, script: Script, limits: Limits | None = None) -> None:
        """Begin another script; the ledger and what was created stay."""
        self._script = script
        self._states: dict[tuple[int, str], RuleState] = {}
        if limits is not None:
            self._limits = limits
            self._accounts.clear()
        self.ledger.reopen()

    def clear(self, now: float) -> None:
        """Begin another ledger."""
        self.ledger = Ledger(now)

    def handle(self, request: Request, now: float) -> Handled:
        head, client = request.head, _client(request)
        vendor, asked = self._whose(request)
        is_rest = vendor is None and self._resource.covers(head.path)
        entry = Entry(
            number=0,
            at=now,
            after=now - self.ledger.opened_at,
            client=client,
            method=head.method,
            path=head.path,
            vendor=vendor.name if vendor else "rest" if is_rest else "other",
            model=asked.model,
            is_stream=asked.is_stream,
            attempt={name: head.headers[name] for name in _ATTEMPT_HEADERS if name in head.headers},
            key=head.headers.get("idempotency-key", "").strip('"'),
            body_hash=request.hash,
        )
        if not is_rest and (vendor is None or asked.is_count):
            return self._aside(entry, vendor, asked, head.path, now)
        id_ = identity(self._seed, len(self.ledger.entries))
        entry = replace(entry, is_early=self.ledger.is_closed(client, entry.vendor, now))
        admission, turn = self._decide(entry, asked, now)
        if vendor is not None:
            headers = vendor.headers(id_, admission, now)
            refuse = vendor.refusal
        else:
            headers, refuse = rest_headers(admission, now), rest_refusal
        fault = turn.fault
        trouble = _trouble(turn, admission, asked, id_, now)
        if fault.status is not None or fault.name in _REFUSALS:
            answer = _refused(refuse(trouble), fault, headers, trouble)
        else:
            answer = Answer(status=200, headers=headers, is_good=True)
        if fault.name == "html":
            answer = _gateway(fault, headers)
        if is_rest:
            entry, answer = self._rest(entry, request, fault, answer)
        elif vendor is not None and answer.is_good:
            answer = self._answer(vendor, asked, fault, answer, trouble)
        if (wait := _stated(answer, turn, admission, now)) is not None:
            self.ledger.close(client, entry.vendor, now + wait)
        acts = deliver(fault, replace(answer, is_bodiless=head.method == "HEAD"), now)
        has_head = fault.name not in {"reset", "lost", "refuse", "close", "hang"}
        entry = replace(entry, outcome=str(fault), status=answer.status if has_head else None)
        closes = fault.seconds("for") or _REFUSE if fault.name == "refuse" else 0.0
        return Handled(acts=acts, entry=self.ledger.add(entry), closes_port=closes)

    def _whose(self, request: Request) -> tuple[Vendor | None, Asked]:
        head = request.head
        body = request.json
        for vendor in VENDORS:
            asked = vendor.read(head.method, head.path, head.query, body)
            if asked is not None:
                return vendor, asked
        return None, Asked()

    def _decide(self, entry: Entry, asked: Asked, now: float) -> tuple[Admission | None, Turn]:
        """Limits first, as at a provider's front door; who is refused there takes no step."""
        admission = None
        if self._limits.requests is not None or self._limits.tokens is not None:
            account = self._accounts.get(entry.client, Account())
            admission, account = admit(self._limits, account, tokens=asked.tokens, now=now)
            self._accounts[entry.client] = account
            if not admission.is_admitted:
                return admission, Turn(fault=_LIMIT)
        index = self._script.find(method=entry.method, path=entry.path, client=entry.client)
        if index is None:
            return admission, Turn(fault=_OK)
        rule = self._script.rules[index]
        whose = entry.client if rule.client == "*" else ""
        state = self._states.get((index, whose)) or RuleState.of(rule)
        turn, self._states[index, whose] = take(
            rule,
            state,
            now=now,
            roll=lambda step: roll(self._seed, str(rule), whose, state.asked, step),
        )
        return admission, turn

    def _answer(
        self, vendor: Vendor, asked: Asked, fault: Fault, answer: Answer, trouble: Trouble
    ) -> Answer:
        call = tool_call(fault, asked) if fault.name in {"shell", "write", "call"} else None
        text = "" if fault.name == "empty" or call else fault.text("text") or self._text
        reply = Reply(id=trouble.id, text=text, call=call, now=trouble.now)
        if asked.is_stream:
            event = vendor.error_event(trouble)
            return replace(answer, stream=vendor.stream(asked, reply), error_event=event)
        overloaded = vendor.refusal(replace(trouble, name="overloaded"))
        return replace(
            answer,
            headers={**answer.headers, "content-type": "application/json"},
            body=json.dumps(vendor.page(asked, reply)).encode(),
            error_body=json.dumps(overloaded.body).encode(),
        )

    def _rest(
        self, entry: Entry, request: Request, fault: Fault, answer: Answer
    ) -> tuple[Entry, Answer]:
        if fault == _LIMIT or not fault.reaches:
            return entry, answer
        done = self._resource.apply(
            method=entry.method,
            path=entry.path,
            body=request.json,
            client=entry.client,
            key=entry.key,
            hash_=entry.body_hash,
        )
        entry = replace(entry, effect=done.effect)
        if not answer.is_good:  # refused, though applied
            return entry, answer
        kind = "application/json" if done.page.status < 400 else "application/problem+json"
        headers = {**answer.headers, **dict(done.page.headers), "content-type": kind}
        body = b"" if fault.name == "empty" else json.dumps(done.page.body).encode()
        error = json.dumps({"error": {"code": "overloaded", "message": "try again later"}}).encode()
        return entry, replace(
            answer, status=done.page.status, headers=headers, body=body, error_body=error
        )

    def _aside(
        self, entry: Entry, vendor: Vendor | None, asked: Asked, path: str, now: float
    ) -> Handled:
        """What programs ask besides: models, token counts, telemetry. It takes no step."""
        status: int = 404
        body: Json = {"error": {"message": f"the fault server has no {path}"}}
        if vendor is not None:
            status, body = 200, vendor.count(asked)
        elif path.endswith("/models"):
            status, body = 200, {"object": "list", "data": [], "models": []}
        elif path == "/":
            status, body = 200, {}
        headers = {"content-type": "application/json"}
        answer = Answer(status=status, headers=headers, body=json.dumps(body).encode())
        answer = replace(answer, is_bodiless=entry.method == "HEAD")
        entry = replace(entry, vendor="other", outcome="aside", status=status)
        return Handled(acts=deliver(_OK, answer, now), entry=self.ledger.add(entry))


def _client(request: Request) -> str:
    named = request.head.headers.get("x-client")
    if named:
        return named[:40]
    key = request.key
    if key.startswith("mulligan-"):
        return key.removeprefix("mulligan-")[:40]
    # A real key may have come here by mistake; it is never kept, nor shown.
    return f"key-{sha256(key.encode()).hexdigest()[:8]}" if key else "anonymous"


def _trouble(
    turn: Turn, admission: Admission | None, asked: Asked, id_: str, now: float
) -> Trouble:
    fault = turn.fault
    said = fault.text("retriable")
    written = fault.text("retry-after")
    return Trouble(
        name=fault.name,
        id=id_,
        now=now,
        asked=asked,
        status=fault.status,
        message=fault.text("message"),
        code=fault.text("code"),
        retry_after=written,
        is_retriable=None if said is None else said == "yes",
        reset_at=turn.reset_at,
        lasts=turn.lasts,
        admission=admission if fault.name == "limit" else None,
    )


def _refused(refusal: Refusal, fault: Fault, headers: dict[str, str], trouble: Trouble) -> Answer:
    if refusal.status == 200 and trouble.asked.is_stream:  # Gemini blocks so
        only = Stream(frames=(sse(refusal.body),), middle=0)
        return Answer(status=200, headers=headers, stream=only)
    headers = {**headers, "content-type": refusal.content_type, **dict(refusal.headers)}
    for name, value in fault.options:
        if name == "retry-after":
            headers[name] = retry_after(value, trouble.now)
        elif name in {"retry-after-ms", "x-should-retry"}:
            headers[name] = value
        elif name.startswith("header."):
            headers[name.removeprefix("header.").lower()] = value
    return Answer(status=refusal.status, headers=headers, body=json.dumps(refusal.body).encode())


def _gateway(fault: Fault, headers: dict[str, str]) -> Answer:
    status = fault.count("status") or 502
    title = f"<head><title>{status}</title></head>"
    page = f"<html>\r\n{title}\r\n<body><h1>{status}</h1></body>\r\n</html>\r\n"
    return Answer(
        status=status, headers={**headers, "content-type": "text/html"}, body=page.encode()
    )


def _stated(answer: Answer, turn: Turn, admission: Admission | None, now: float) -> float | None:
    """Seconds that this answer tells the client to stay away."""
    if turn.reset_at is not None:
        return turn.reset_at - now
    if turn.fault.name == "limit" and admission is not None:
        return admission.retry_after
    return stated_wait(answer.headers, turn.fault.text("retry-after"), now)

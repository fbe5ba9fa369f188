"""The ledger: every request to the fault server, and its effects.

It tells a test how many requests and effects there were, whether an effect was made twice, and
whether a client retried before the time that the server had stated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

__all__ = ("LedgerEntry", "RequestLedger", "Totals")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One request."""

    number: int  # from 1, in order of arrival
    at: float  # in epoch seconds
    after: float  # seconds since the ledger was opened
    client: str  # whose it was: the name in a `mulligan-NAME` key, else a hash of the key
    method: str
    path: str  # without the query
    vendor: str  # `anthropic`, `responses`, `chat`, `gemini`, `rest` or `other`
    model: str = ""
    is_stream: bool = False
    # What the client said about its attempt: `x-stainless-retry-count` and its like.
    attempt: dict[str, str] = field(default_factory=dict)
    key: str = ""  # its `Idempotency-Key`
    body_hash: str = ""  # sixteen hexadecimal digits; equal bodies have equal hashes
    outcome: str = ""  # what the script or the limits gave it, `429(retry-after=2)`, `limit`, `ok`
    status: int | None = None  # None if no head was sent
    # The client began it after it was told to stay away, and before the stated time. Requests that
    # were under way when the refusal was sent do not count.
    is_early: bool = False
    effect: str = ""  # what it changed, `POST /invoices/7`; empty if nothing
    is_duplicate: bool = False  # the same effect, by key or by body, had been made before
    # A creation with a key of its own, whose body had come with another key.
    is_rekeyed: bool = False
    # `open` while it is being answered, then `done`; `left` if the client disconnected before,
    # `reset` if the server broke off (another request's `refuse`, or its own stop).
    ending: str = "open"

    def as_json(self) -> dict[str, Any]:
        """All of it by name; asdict() would copy for seconds where there are many."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The ledger in numbers."""

    requests: int  # requests to a vendor's API or a resource; others are not counted
    effects: int
    duplicates: int  # effects that had been made before
    # Creations whose body had come with another key: a fresh key for each attempt looks like this,
    # and so do two equal orders.
    rekeyed: int
    early: int  # requests that began inside a closed window
    left: int  # requests whose client disconnected before the end
    outcomes: dict[str, int]  # how often each outcome was given


class RequestLedger:
    """A list that grows. Written by one thread; any thread may read."""

    def __init__(self, opened_at: float) -> None:
        self.opened_at = opened_at
        self._entries: list[LedgerEntry] = []
        self._effects: set[tuple[str, ...]] = set()
        self._closed: dict[tuple[str, str], tuple[float, float]] = {}

    def is_closed(self, client: str, vendor: str, began_at: float, now: float) -> bool:
        """Whether the client was told, before it began, to stay away until after `now`."""
        since, until = self._closed.get((client, vendor), (0.0, 0.0))
        return since <= began_at and now < until

    def close(self, client: str, vendor: str, since: float, until: float) -> None:
        """Record that the client was told to stay away until then; the last statement counts.

        If it is told again inside a closed window, the time of the first statement counts.
        """
        first, end = self._closed.get((client, vendor), (since, 0.0))
        self._closed[client, vendor] = (min(first, since) if since < end else since, until)

    def reopen(self) -> None:
        """Forget what clients were told: another script is another server."""
        self._closed.clear()

    def add(self, entry: LedgerEntry) -> LedgerEntry:
        """Note a request; its number and whether its effect is a duplicate are found here."""
        entry = replace(entry, number=len(self._entries) + 1)
        if entry.effect:
            # A creation names what it made; the same creation again names another. So creations
            # are compared by what was sent, and changes by what they changed.
            verb, _, place = entry.effect.partition(" ")
            what = entry.path if verb == "POST" else place
            mark = (entry.client, verb, what, entry.key or entry.body_hash)
            is_known, is_creation = mark in self._effects, verb == "POST"
            by_body = (entry.client, verb, what, "any key", entry.body_hash)
            is_rekeyed = is_creation and not is_known and bool(entry.key)
            entry = replace(
                entry,
                is_duplicate=is_creation and is_known,
                is_rekeyed=is_rekeyed and by_body in self._effects,
            )
            self._effects |= {mark, by_body}
        self._entries.append(entry)
        return entry

    def finish(self, number: int, ending: str) -> None:
        """Note how the answer to a request ended."""
        if number <= len(self._entries):
            self._entries[number - 1] = replace(self._entries[number - 1], ending=ending)

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        return tuple(self._entries)

    @property
    def totals(self) -> Totals:
        asked = [entry for entry in self.entries if entry.vendor != "other"]
        return Totals(
            requests=len(asked),
            effects=sum(bool(entry.effect) for entry in asked),
            duplicates=sum(entry.is_duplicate for entry in asked),
            rekeyed=sum(entry.is_rekeyed for entry in asked),
            early=sum(entry.is_early for entry in asked),
            left=sum(entry.ending == "left" for entry in asked),
            outcomes=dict(Counter(entry.outcome for entry in asked)),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "opened_at": self.opened_at,
            "totals": asdict(self.totals),
            "entries": [entry.as_json() for entry in self.entries],
        }

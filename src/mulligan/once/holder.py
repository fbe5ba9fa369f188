"""One call's use of one key: claim, renew, store the result, without waiting.

The value of a key is an envelope, because "it was done, but what came of it is not JSON" must be
kept as well: the effect has happened, so no caller may do it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..core.dead_letter import UnderKey
from ..core.duration import duration_text
from ..core.ports import Keys
from ..core.record import record
from ..core.redaction import presentable
from ..errors import KeyReused, NotKept
from ..stores.state_machine import Key
from .claims import Done, Drop, Finish, Mine, Mismatch, Renew, Take
from .pending import offer, remembered
from .renewal import RENEWALS
from .wakeups import wake

if TYPE_CHECKING:
    from .claims import Busy

__all__ = ("KeyHold", "OnceTerms")

# At most so many seconds pass until a store that was down is asked again: others wait for the key.
_SOON = 5.0


@record(kw_only=True)
class OnceTerms:
    """On what terms something is done once.

    Args:
        keys: Where claims are kept.
        place: Which claim.
        key: The key, as it is sent to the server.
        fingerprint: The function and what it was called with, ``charge:…``.
        lease: Seconds until a holder that is silent has lost the key.
        ttl: Seconds for which the result is kept.
        dump: (answer) → JSON; None where answers are JSON.
        load: (JSON) → answer; None where JSON is the answer.
    """

    keys: Keys
    place: Key
    key: str
    fingerprint: str
    lease: float
    ttl: float
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None

    def under(self) -> UnderKey:
        """The key, as a dead letter keeps it."""
        return UnderKey(
            key=self.key,
            part=self.place.part,
            fingerprint=self.fingerprint,
            lease=self.lease,
            ttl=self.ttl,
        )


class KeyHold:
    """One caller's hold on a key."""

    def __init__(self, terms: OnceTerms) -> None:
        self.terms = terms
        self.label = presentable(terms.key, 100)
        self._holder = os.urandom(8).hex()
        self._epoch = 0
        self._renewal = _Renewal(self)

    # What is asked of the store

    def take(self) -> Take:
        terms = self.terms
        return Take(holder=self._holder, fingerprint=terms.fingerprint, lease=terms.lease)

    def finish(self, value: str) -> Finish:
        terms = self.terms
        return Finish(
            holder=self._holder,
            epoch=self._epoch,
            fingerprint=terms.fingerprint,
            value=value,
            ttl=terms.ttl,
        )

    def drop(self, *, in_doubt: bool = False) -> Drop:
        doubt = self.terms.ttl if in_doubt else 0.0
        return Drop(holder=self._holder, epoch=self._epoch, doubt=doubt)

    # What it answered

    def taken(self, answer: Mine | Busy | Done | Mismatch) -> Mine | Busy | Done:
        """`answer`, acted upon: a key that is ours is renewed from now on.

        Raises:
            KeyReused: The key stands for something else.
        """
        if isinstance(answer, Mismatch):
            raise KeyReused(self.label, self._differs(answer.fingerprint))
        if isinstance(answer, Mine):
            self._epoch = answer.epoch
            RENEWALS.add(self._renewal, self.terms.lease / 3)
        return answer

    def known(self) -> Done | None:
        """What came of it, where this process alone knows that yet.

        Raises:
            KeyReused: The key stands for something else.
        """
        found = remembered(self.terms)
        if isinstance(found, Mismatch):
            raise KeyReused(self.label, self._differs(found.fingerprint))
        return found

    def _differs(self, found: str) -> str:
        mine, theirs = (each.partition(":")[0] for each in (self.terms.fingerprint, found))
        if mine != theirs:
            return f"its key stands for {theirs}(), not {mine}(); a new operation needs a new key"
        return (
            f"its key stands for a call of {mine}() with other arguments; a new operation needs "
            f"a new key, and parameters that differ between repeats need exclude="
        )

    @property
    def is_held(self) -> bool:
        """Whether this caller has the key, as far as it knows."""
        return self._epoch > 0

    def end(self) -> None:
        """Another caller holds the key, or it is done."""
        RENEWALS.remove(self._renewal)
        self._epoch = 0
        wake(self.terms.place)

    # Values

    def written(self, answer: object) -> tuple[str, NotKept | None]:
        """The envelope for `answer`; and what to say if the answer itself is not in it."""
        terms, text = self.terms, ""
        try:
            value = answer if terms.dump is None else terms.dump(answer)
            text = json.dumps({"value": value}, separators=(",", ":"), allow_nan=False)
            is_same = json.loads(text)["value"] == value
        except (TypeError, ValueError, RecursionError):
            is_same = False
        except Exception as trouble:  # noqa: BLE001 -- dump= is the caller's; the effect has happened
            return self._lost(answer, f"dump= raised {type(trouble).__name__}")
        if is_same:
            return text, None
        what = "its result" if terms.dump is None else "what dump= made of its result"
        return self._lost(answer, f"{what}, a {type(answer).__name__}, is not JSON")

    def _lost(self, answer: object, what: str) -> tuple[str, NotKept]:
        said = (
            f"it was done and will not be done again, but {what} and was not kept; the result is "
            f"this error's value; convert it with Once(…, dump=to_json, load=from_json)"
        )
        envelope = json.dumps({"lost": presentable(what, 200)})
        return envelope, NotKept(self.label, said, answer)

    def replayed(self, done: Done) -> Any:
        """What came of it when it was done.

        Raises:
            NotKept: It was not kept.
        """
        envelope = json.loads(done.value)
        if "value" not in envelope:
            raise NotKept(
                self.label,
                f"it was done and is not done again, but {envelope.get('lost')} and was not kept; "
                f"convert it with Once(…, dump=to_json, load=from_json)",
            )
        value, load = envelope["value"], self.terms.load
        return value if load is None else load(value)

    def overtaken(self, answer: object) -> NotKept:
        """The error of a holder that lost its key and cannot wait for its successor."""
        lease = duration_text(self.terms.lease)
        return NotKept(
            self.label,
            f"it was silent for more than its lease of {lease} and another caller has taken over; "
            f"this caller's result is this error's value, and was not kept",
            answer,
        )

    # In the background

    def renew(self) -> float | None:
        """Renew the lease; seconds until the next time, or None if the key is lost."""
        terms, epoch = self.terms, self._epoch
        renew = Renew(
            holder=self._holder, epoch=epoch, fingerprint=terms.fingerprint, lease=terms.lease
        )
        try:
            is_held = terms.keys.transact(terms.place, renew)
        except Exception:  # noqa: BLE001 -- a store that is being closed raises anything
            return _soon(terms)  # what is left of the lease is enough for another try
        return terms.lease / 3 if is_held else None

    def leave(self) -> None:
        """Give the key back soon: for callers that cannot wait, or do not know if they have it."""
        RENEWALS.remove(self._renewal)
        RENEWALS.add(_Leaving(self), 0.0)

    def settle(self, finish: Finish) -> None:
        """Have the result recorded as soon as the store takes it; this process knows it by now."""
        RENEWALS.remove(self._renewal)
        offer(self.terms, finish)
        self._epoch = 0


def _soon(terms: OnceTerms) -> float:
    """Seconds until a store that did not answer is asked again."""
    return min(terms.lease / 6, _SOON)


class _Renewal:
    """Renews a key as long as a caller may still use it.

    A coroutine that is never awaited, or a task that is thrown away with its loop, ends nothing: it
    is collected. Its key must not be renewed for ever, so nothing here keeps the holding alive.
    """

    def __init__(self, holding: KeyHold) -> None:
        self._holding, self.keys = ref(holding), holding.terms.keys

    def act(self) -> float | None:
        holding = self._holding()
        return None if holding is None else holding.renew()


class _Leaving:
    """A caller was cancelled, or lost the store's answer, and the key may be its own."""

    def __init__(self, holding: KeyHold) -> None:
        self._holding, self.keys = holding, holding.terms.keys
        self._until = monotonic() + holding.terms.lease

    def act(self) -> float | None:
        terms, take = self._holding.terms, self._holding.take()
        try:
            answer = terms.keys.transact(terms.place, take)
            if isinstance(answer, Mine):
                drop = Drop(holder=take.holder, epoch=answer.epoch, doubt=terms.ttl)
                terms.keys.transact(terms.place, drop)
        except Exception:  # noqa: BLE001 -- the same
            # Others need not wait for the end of the lease, if the store is back before it.
            return _soon(terms) if monotonic() < self._until else None
        wake(terms.place)
        return None

"""Claims on idempotency keys: the pure state machine of claim, lease and result.

    free ──take──▶ held ──finish──▶ done ──time passed──▶ free
     ▲              │ └──lease over──▶ free
     └────drop──────┘

Each time it is taken the epoch rises, and a holder that finishes says which epoch it took. So a
holder that was stopped, slept through its lease, and woke up cannot overwrite what its successor
did: it is fenced, and learns so.

A lease expires only while another caller watches it. A store that was away, or a machine that
slept, kept the holder from renewing as well; so time in which no caller asked for the key
counts for a sixth of the lease at most, and after an outage the holder has time to renew or to
finish.

A failure is dropped, not stored: a cached error would poison every repeat (E-F6). If what failed
may have been applied, the key stays in doubt: it may be repeated, and used for nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.moment import Due, Moment
from ..core.record import record
from ..stores.state_machine import Machine

__all__ = ("CLAIM", "Busy", "Claim", "Done", "Drop", "Finish", "Mine", "Mismatch", "Renew", "Take")


@record()
class Claim:
    """The state of one key.

    Args:
        epoch: Rises each time the key is taken.
        holder: Who holds it; empty if no one does.
        due: When the holder's lease, or the stored value or doubt, expires.
        fingerprint: What the key was first used for; another use of it is a mistake.
        value: The result as JSON, once there is one.
        asked_at: When another caller last asked for it while it was held, on the clock of `due`;
            None if none has since it was taken or renewed.
    """

    epoch: int = 0
    holder: str = ""
    due: Due | None = None
    fingerprint: str = ""
    value: str | None = None
    asked_at: float | None = None

    def asked(self, moment: Moment) -> Claim:
        """The claim once another caller has asked for it: unwatched time is given back."""
        due = self.due
        if not self.holder or due is None or due.era != moment.era:
            return self
        since = due.at - due.span if self.asked_at is None else self.asked_at
        unwatched, most = moment.now - since, due.span * _UNWATCHED
        if unwatched < most / 2:
            return self  # so that those who wait for it do not write at every look
        later = replace(due, at=due.at + max(unwatched - most, 0.0))
        return replace(self, due=later, asked_at=moment.now)

    def left(self, moment: Moment) -> float:
        """Seconds for which it is held or remembered; 0 if it is free."""
        return 0.0 if self.due is None else self.due.left(moment)


# The share of a lease that passes at most while no caller asks. A holder renews after a third of
# it, and asks a store that was away again within a sixth: three outages in one lease leave time.
_UNWATCHED = 1 / 6

# The epoch must outlive any holder that could still wake up with an older one.
_FENCE = 7 * 86_400.0


def _keep(state: Claim, moment: Moment) -> float:
    return _FENCE + state.left(moment)


CLAIM: Machine[Claim] = Machine(name="claim", start=Claim(), keep=_keep)


class _Step:
    """Base of the operations on this machine."""

    __slots__ = ()
    machine = CLAIM


@record()
class Mine:
    """The caller holds the key; `epoch` is what it must show later."""

    epoch: int


@record()
class Busy:
    """Another caller holds the key, for `retry_in` seconds at most.

    Who, and which taking it was, is for callers that can find out whether the holder is alive: a
    dead one's claim can be dropped in its name.
    """

    retry_in: float
    holder: str = ""
    epoch: int = 0


@record()
class Done:
    """It has been done; this came of it, as JSON."""

    value: str


@record()
class Mismatch:
    """The key was used for something else: a mistake in the program, never retried (E-F3)."""

    fingerprint: str


@record(kw_only=True)
class Take(_Step):
    """May the caller do it?

    Args:
        holder: Who asks; asking again while it holds the key answers the same.
        fingerprint: What the key stands for, so that another use of it is noticed.
        lease: Seconds until another caller may take it.
    """

    holder: str
    fingerprint: str
    lease: float

    def __call__(self, state: Claim, moment: Moment) -> tuple[Claim, Mine | Busy | Done | Mismatch]:
        if state.holder != self.holder:
            state = state.asked(moment)
        left = state.left(moment)
        # A holder that has vanished may have done it; its key is free for a repeat, and no more.
        if (left > 0 or state.holder) and state.fingerprint != self.fingerprint:
            return state, Mismatch(state.fingerprint)
        if left > 0:
            if state.value is not None:
                return state, Done(state.value)
            if state.holder == self.holder:
                return state, Mine(state.epoch)
            if state.holder:
                return state, Busy(left, state.holder, state.epoch)
        due = moment.lease(self.lease)
        taken = Claim(state.epoch + 1, self.holder, due, self.fingerprint)
        return taken, Mine(taken.epoch)


@record(kw_only=True)
class Renew(_Step):
    """The holder is alive and needs `lease` seconds more."""

    holder: str
    epoch: int
    fingerprint: str
    lease: float

    def __call__(self, state: Claim, moment: Moment) -> tuple[Claim, bool]:
        """The result is whether it still holds the key.

        An expired lease may be renewed as long as no other caller has taken the key; and so may one
        that the store has forgotten.
        """
        is_lost = _is_forgotten(state, self.epoch)
        if not is_lost and not _is_held(state, self.holder, self.epoch):
            return state, False
        return Claim(self.epoch, self.holder, moment.lease(self.lease), self.fingerprint), True


@record(kw_only=True)
class Finish(_Step):
    """It is done: `value` is its result as JSON, remembered for `ttl` seconds."""

    holder: str
    epoch: int
    fingerprint: str
    value: str
    ttl: float

    def __call__(self, state: Claim, moment: Moment) -> tuple[Claim, bool]:
        """The result is whether it was stored; if not, a successor has taken over (E-F5)."""
        if state.epoch == self.epoch and state.value == self.value and state.left(moment) > 0:
            return state, True  # it landed before
        is_lost = _is_forgotten(state, self.epoch)
        if not is_lost and not _is_held(state, self.holder, self.epoch):
            return state, False
        due = moment.stated(self.ttl)
        return Claim(self.epoch, "", due, self.fingerprint, self.value), True


@record(kw_only=True)
class Drop(_Step):
    """It failed and may be done again, by any caller, at once.

    Args:
        holder: Who had it.
        epoch: What it was taken with.
        doubt: Seconds for which another use of the key stays a mistake, because what failed may
            have been applied: the server may know the key by now (E-F3).
    """

    holder: str
    epoch: int
    doubt: float = 0.0

    def __call__(self, state: Claim, moment: Moment) -> tuple[Claim, bool]:
        """The result is whether the caller held the key."""
        if not _is_held(state, self.holder, self.epoch):
            return state, False
        if self.doubt <= 0:
            return Claim(epoch=state.epoch), True
        return replace(state, holder="", due=moment.stated(self.doubt), asked_at=None), True


def _is_held(state: Claim, holder: str, epoch: int) -> bool:
    return bool(holder) and state.holder == holder and state.epoch == epoch and state.value is None


def _is_forgotten(state: Claim, epoch: int) -> bool:
    """Whether the store has lost what it confirmed: epochs only rise."""
    return state.epoch < epoch

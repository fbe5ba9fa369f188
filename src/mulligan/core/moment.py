"""Points in time that several processes share: deadlines and leases.

A store says what time it is, once for every transition, and the transition writes down when
something is over. Three things go wrong with shared clocks: a machine boots and its steady clock
starts again, an operator sets the calendar, a server's clock jumps back. So a `Due` remembers
which clock it was measured on, and how long it was meant to last: it can end early where its
clock is gone, but it can never last longer than it was meant to.
"""

from __future__ import annotations

from .record import record

__all__ = ("Due", "Lease", "Moment")

# Clocks are read before they are written; a Due that began this little ahead of now is no jump.
_SLACK = 1.0


@record()
class Due:
    """When something ends.

    Args:
        at: On the steady clock of `era`.
        span: Seconds it was meant to last from the beginning.
        era: Which steady clock: a boot, a server.
        wall: The same in epoch seconds, for what a server stated and a reboot does not end; None
            for a lease, whose holder did not survive the reboot either.
    """

    at: float
    span: float
    era: str
    wall: float | None = None

    def left(self, moment: Moment) -> float:
        """Seconds until it ends; 0 if it has. Never more than `span`."""
        if self.era == moment.era and moment.now >= self.at - self.span - _SLACK:
            left = self.at - moment.now
        elif self.wall is not None:
            left = self.wall - moment.wall
        else:
            return 0.0
        return min(max(left, 0.0), self.span)


@record()
class Moment:
    """What time it is, as the store has it.

    Args:
        now: Seconds on a clock that does not go back within its era.
        wall: Seconds since the epoch.
        era: Which steady clock `now` was read from.
    """

    now: float
    wall: float
    era: str = ""

    def lease(self, span: float) -> Due:
        """Over `span` seconds from now, or when the machine boots."""
        return Due(self.now + span, span, self.era)

    def stated(self, span: float) -> Due:
        """Over `span` seconds from now, whatever happens to the machine."""
        return Due(self.now + span, span, self.era, self.wall + span)


@record()
class Lease:
    """Something handed out until `due`; `id` is chosen by the caller."""

    id: str
    due: Due

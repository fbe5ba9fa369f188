"""How a gate opens when nobody says how much is left.

    one probe ──answered──▶ two at a time ──answered──▶ four … ──rejected──▶ shut
        ▲                                                                     │
        └──────────as many a span as went well, then one more─────────────────┘

Slow start finds out how much passes. What passed before a rejection is then given out once in
every span, where a span is the time in which it passed, plus the wait that the rejection asked
for: on a fixed window that is the window, on a bucket the time it takes to fill by as much. It
grows again only after clean spans, so finding out costs a rejection now and then, not one a call.

Before anything has shown a cap, what passed in the burst before the first rejection is a guess
at it: up to there slow start is in a hurry, beyond it it begins again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .moment import Due, Moment

__all__ = ("Opening",)

# Clean spans before more is tried than went well.
_PATIENCE = 16


@dataclass(frozen=True, slots=True)
class Opening:
    """How far a gate has opened since it was last shut.

    Args:
        allowed: Calls that may be under way at a time.
        cap: Calls that passed in an earlier span; None where none has shown it.
        span: Seconds in which `cap` calls pass.
        ends: When this span is over; None before it has begun.
        granted: Calls let through in this span.
        answered: Those of them that were answered, and not rejected.
        clean: Spans in a row without a rejection.
        quiet: When there has been no rejection for so long that the gate need not care.
        guess: Calls that passed, uncounted, in the burst before the first rejection.
        is_paced: Whether a cap was known when the gate was shut, and was too much.
    """

    allowed: int
    cap: int | None
    span: float
    ends: Due | None
    granted: int
    answered: int
    clean: int
    quiet: Due
    guess: int = 0
    is_paced: bool = False

    @classmethod
    def after(
        cls, before: Opening | None, wait: float, moment: Moment, *, passed: int = 0
    ) -> Opening:
        """The next opening, once the gate has been shut for `wait` seconds."""
        cap, span = None, wait
        if before is not None and before.ends is not None:
            # What passed took the time since the span began, and takes the wait on top.
            span += before.span - before.ends.left(moment)
            cap = max(1, before.answered)
            if not before.answered and before.cap is not None:
                # Rejected at its first call: the span before was too short, not too full.
                cap, span = before.cap, span + (before.span if before.clean else 0.0)
            if before.cap is not None:
                # Answers come late, and some of those counted belong to the span before. What
                # was rejected was too much, so it is never more than that from here.
                span = max(span, cap * before.span / before.cap)
        is_paced = before is not None and before.cap is not None
        return cls(1, cap, span, None, 0, 0, 0, _quiet(wait, span, moment), passed, is_paced)

    def delayed(self, wait: float, moment: Moment, *, passed: int) -> Opening:
        """This opening, `wait` seconds off after all, and after `passed` more had passed."""
        quiet = _quiet(wait, self.span, moment)
        if quiet.left(moment) < self.quiet.left(moment):
            quiet = self.quiet
        return replace(self, quiet=quiet, guess=self.guess + passed)

    def begun(self, shut: Due, moment: Moment) -> Opening:
        """This opening, its first span counted from when the gate was to open.

        Not from the first call: that may come a little late, and a span measured from it would be
        too short by as much.
        """
        if self.ends is not None or shut.era != moment.era:
            return self
        return replace(self, ends=Due(shut.at + self.span, self.span, shut.era))

    def turned(self, moment: Moment) -> Opening:
        """This opening now; a new span if the last one is over."""
        if self.ends is None or self.ends.left(moment) > 0 or self.cap is None:
            return self
        was_used_up = self.granted >= self.cap
        clean = self.clean + 1 if was_used_up else self.clean
        cap = self.cap
        if was_used_up and clean > _PATIENCE:
            cap += max(1, cap >> 3) << min(clean - _PATIENCE - 1, 20)
        return replace(
            self,
            allowed=max(self.allowed, self.cap),
            cap=cap,
            ends=moment.lease(self.span),
            granted=0,
            answered=0,
            clean=clean,
            # While calls wait for the next span there is more demand than anybody has seen pass.
            quiet=_quiet(self.span, self.span, moment) if was_used_up else self.quiet,
        )

    def wait(self, live: int, age: float, moment: Moment) -> float:
        """Seconds to wait before the next call; 0 if it may go.

        Args:
            live: Calls under way.
            age: For how many seconds the oldest of them has been.
            moment: Now.
        """
        if self.cap is not None and self.granted >= self.cap and self.ends is not None:
            return max(self.ends.left(moment), 0.001)
        if live >= self.allowed:
            # Nobody knows how long an answer takes; what has taken long may take a little longer.
            return min(max(age / 20, 0.005), 1.0)
        return 0.0

    def granting(self, count: int, moment: Moment) -> Opening:
        """After `count` more calls were let through."""
        ends = moment.lease(self.span) if self.ends is None else self.ends
        granted, allowed = self.granted + count, self.allowed
        if self.cap is None and self.granted < self.guess <= granted:
            allowed = max(1, self.guess >> 3)
        return replace(self, granted=granted, ends=ends, allowed=allowed)

    def hearing(self) -> Opening:
        """After a call was answered: one more may be under way than before, or three."""
        answered, more = self.answered + 1, 1
        if self.cap is None and answered <= self.guess:
            more = 3 if self.granted < self.guess else 0
        return replace(self, answered=answered, allowed=min(self.allowed + more, 1 << 20))

    def hearing_late(self) -> Opening:
        """After a call from before the rejection was answered: one more had passed by then."""
        if self.cap is None or self.is_paced:
            return self
        return replace(self, cap=self.cap + 1)


def _quiet(wait: float, span: float, moment: Moment) -> Due:
    return moment.stated(wait + max(60.0, 10 * span))

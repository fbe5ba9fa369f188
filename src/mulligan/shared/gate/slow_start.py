"""How a gate opens when nobody says how much is left.

    one probe ──answered──▶ two at a time ──answered──▶ four … ──rejected──▶ shut
        ▲                                                                     │
        └──────────as many a span as went well, then one more─────────────────┘

Slow start finds out how much passes. What passed before a rejection is then given out once in
every span, where a span is the time in which it passed, plus the wait that the rejection asked
for: on a fixed window that is the window, on a bucket the time it takes to fill by as much. It
grows again only after clean spans, so finding out costs a rejection now and then, not one a call.

A bucket betrays itself: it asks to wait for about as long as one call takes to come back, while a
window asks to wait until its end. From one rejection to the next a bucket lets through exactly
what has come back, so its pace is measured over all of that time, not over one span. It is then
kept by the clock: who comes late takes nothing from those behind.

Before anything has shown a cap, what passed in the burst before the first rejection is a guess
at it: up to there slow start is in a hurry, beyond it it begins again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from .moment import Due, Moment

__all__ = ("Opening",)

# Clean spans before more is tried than went well; and the most of them, where more went wrong.
_PATIENCE, _MOST_PATIENCE = 16, 64

# Answers after which more than a bucket lets through is believed not to come from one.
_CONVINCED = 4

# Spans of a bucket that can be made up for, and the shortest span, in seconds.
_MADE_UP, _SHORTEST = 4, 0.05


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
        is_smooth: Whether calls come back one by one, as in a bucket, and not all at once.
        passed: Calls let through since the gate opened, less those rejected.
        lasted: Seconds since then, up to this span, in which there was demand.
        past_passed: As many before it was last shut, and
        past_lasted: in how many seconds; half of the past is forgotten every time.
        patience: Clean spans before more is tried than went well.
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
    is_smooth: bool = False
    passed: int = 0
    lasted: float = 0.0
    past_passed: float = 0.0
    past_lasted: float = 0.0
    patience: int = _PATIENCE

    @classmethod
    def after(
        cls, before: Opening | None, wait: float, moment: Moment, *, passed: int = 0
    ) -> Opening:
        """The next opening, once the gate has been shut for `wait` seconds."""
        cap, span, past = None, wait, (0, 0.0)
        if before is not None and before.ends is not None:
            if before.is_smooth:
                return before.slowed(wait, moment)
            # What passed took the time since the span began, and takes the wait on top.
            span += before.elapsed(moment)
            cap = max(1, before.answered)
            if not before.clean:
                past = (before.passed, span)
            if not before.answered and before.cap is not None:
                # Rejected at its first call: the span before was too short, not too full.
                cap, span = before.cap, span + (before.span if before.clean else 0.0)
            if before.cap is not None:
                # Answers come late, and some of those counted belong to the span before. What
                # was rejected was too much, so it is never more than that from here.
                span = max(span, cap * before.span / before.cap)
        is_paced = before is not None and before.cap is not None
        quiet = _quiet(wait, span, moment)
        opening = cls(1, cap, span, None, 0, 0, 0, quiet, passed, is_paced)
        return replace(opening, past_passed=past[0], past_lasted=past[1])

    def elapsed(self, moment: Moment) -> float:
        """Seconds since this span began."""
        if self.ends is None or self.ends.era != moment.era:
            return self.span
        return max(0.0, self.span + moment.now - self.ends.at)

    def slowed(self, wait: float, moment: Moment) -> Opening:
        """The next opening of a bucket, once the gate has been shut for `wait` seconds."""
        span, patience = self.span, self.patience
        passed, lasted = self.past_passed, self.past_lasted
        if wait > 4 * span + 1.0:
            # Not the wait for one call, even if rounded up: less comes back, or another limit ends.
            span *= 2
            passed, lasted = float(self.cap or 1), span
        elif self.passed > 0:
            now_lasted = self.lasted + self.elapsed(moment) + wait
            missing = now_lasted * (self.cap or 1) / span - self.passed
            if missing > max(2, self.passed):
                passed = lasted = 0.0  # it gives less than it did; two may be counted too late
            passed, lasted = passed / 2 + self.passed, lasted / 2 + now_lasted
            if self.clean > patience:
                # More was tried than had been measured, and perhaps it went well for a while.
                is_futile = lasted / passed > 0.9 * span / (self.cap or 1)
                patience = min(2 * patience, _MOST_PATIENCE) if is_futile else _PATIENCE
                span /= 2
        return replace(
            self,
            allowed=1,
            span=span,
            ends=None,
            granted=0,
            answered=0,
            clean=0,
            quiet=_quiet(wait, span, moment),
            guess=0,
            is_paced=True,
            passed=0,
            lasted=0.0,
            past_passed=passed,
            past_lasted=lasted,
            patience=patience,
        )

    def refused(self, *, is_late: bool) -> Opening:
        """After a call that had been let through was rejected; late if before the last shut."""
        # What is no longer counted, half of it forgotten, cannot be taken back whole.
        past_passed = max(0.0, self.past_passed - 1)
        if self.ends is None:
            return replace(self, past_passed=past_passed)
        if not is_late or not self.is_smooth:
            return replace(self, passed=self.passed - 1)
        after = replace(self, past_passed=past_passed).measured(0.0)
        ends = replace(self.ends, at=self.ends.at - self.span + after.span, span=after.span)
        return replace(after, ends=ends)

    def delayed(self, wait: float, left: float, moment: Moment, *, passed: int) -> Opening:
        """This opening, `wait` seconds off and not `left`, and after `passed` more had passed."""
        quiet = _quiet(wait, self.span, moment)
        if quiet.left(moment) < self.quiet.left(moment):
            quiet = self.quiet
        lasted = self.past_lasted + min(wait - left, self.span)
        return replace(self, quiet=quiet, guess=self.guess + passed, past_lasted=lasted)

    def begun(self, shut: Due, moment: Moment) -> Opening:
        """This opening, its first span counted from when the gate was to open.

        Not from the first call: that may come a little late, and a span measured from it would be
        too short by as much.
        """
        if self.ends is not None or shut.era != moment.era:
            return self
        opening = self.measured(shut.span)
        return replace(opening, ends=Due(shut.at + opening.span, opening.span, shut.era))

    def measured(self, wait: float) -> Opening:
        """This opening at the pace of a bucket, if what passed before a `wait` shows one."""
        if self.cap is None or self.past_passed < 1:
            return self
        spacing = max(self.past_lasted / self.past_passed, 1e-6)
        if not self.is_smooth and wait >= 2 * spacing:
            return self
        if self.is_paced or self.is_smooth:  # never quicker than what was too quick
            spacing = max(spacing, self.span / self.cap)
        cap = max(1, ceil(_SHORTEST / spacing))
        return replace(self, is_smooth=True, cap=cap, span=cap * spacing)

    def turned(self, moment: Moment) -> Opening:
        """This opening now; a new span if the last one is over."""
        if self.ends is None or self.ends.left(moment) > 0 or self.cap is None:
            return self
        if self.is_smooth:
            return self._turned_smoothly(self.cap, self.ends, moment)
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

    def _turned_smoothly(self, cap: int, ends: Due, moment: Moment) -> Opening:
        late = max(0.0, moment.now - ends.at) if ends.era == moment.era else 0.0
        spans = 1 + int(late / self.span)
        # A call now and then is not held back, so it is no reason to keep the pace.
        was_used_up, is_wanted = self.granted >= cap, self.granted >= 0
        clean = self.clean + 1 if was_used_up and self.answered else self.clean
        granted = self.granted - spans * cap
        unused = max(0, -_MADE_UP * cap - granted)  # nobody came for them
        granted += unused
        if clean > max(self.clean, self.patience):
            granted -= max(1, cap >> 3) << min(clean - self.patience - 1, 20)
        return replace(
            self,
            # The pace alone holds calls back from here: they may take longer than a span.
            allowed=min(self.allowed + spans * cap, 1 << 20),
            ends=Due(moment.now - late + spans * self.span, self.span, moment.era),
            granted=granted,
            answered=0,
            clean=clean,
            quiet=_quiet(self.span, self.span, moment) if is_wanted else self.quiet,
            lasted=self.lasted + max(0.0, spans - unused / cap) * self.span,
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
            # A window holds no more than the guess. Where answers are slow, a bucket has filled.
            allowed = 1 if ends.left(moment) > 0 else max(1, self.guess >> 3)
        passed = self.passed + count
        return replace(self, granted=granted, ends=ends, allowed=allowed, passed=passed)

    def hearing(self, live: int, moment: Moment) -> Opening:
        """After a call was answered, while `live` are under way: one more may be, or many more."""
        answered, more, quiet = self.answered + 1, 1, self.quiet
        if self.cap is None and live + 1 >= self.allowed:  # others wait for it
            quiet = _quiet(0.0, self.span, moment)
        if self.cap is None and answered <= self.guess:
            more = self._hurry(answered, moment) if self.granted < self.guess else 0
        allowed = min(self.allowed + more, 1 << 20)
        return replace(self, answered=answered, allowed=allowed, quiet=quiet)

    def _hurry(self, answered: int, moment: Moment) -> int:
        """How many more may be under way, up to the guess."""
        # A bucket that asked to wait for its next call lets no more through than one in as long.
        # Whoever asks for whole seconds may have meant almost one less.
        span, lasted = self.span, self.elapsed(moment)
        if answered >= _CONVINCED and span >= 2 and answered > 1 + (lasted + 1) / (span - 1):
            return self.guess
        return 2 if span >= 2 else max(1, min(3, int(lasted / span)))

    def hearing_late(self) -> Opening:
        """After a call from before the rejection was answered: one more had passed by then."""
        if self.cap is None or self.is_paced:
            return self
        return replace(self, cap=self.cap + 1)


def _quiet(wait: float, span: float, moment: Moment) -> Due:
    return moment.stated(wait + max(60.0, 10 * span))

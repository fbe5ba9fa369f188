"""Slow start: how a gate opens when the server does not say how much is left.

    one probe ──answered──▶ two at a time ──answered──▶ four … ──rejected──▶ shut
        ▲                                                                     │
        └──────────as many a span as went well, then one more─────────────────┘

Slow start finds out how much passes. What passed before a rejection is then given out once in
every span, where a span is the time in which it passed, plus the wait that the rejection asked
for: on a fixed window that is the window, on a bucket the time it takes to fill by as much. It
grows again only after clean spans, so finding out costs a rejection now and then, not one a call.

A bucket can be recognised: it asks to wait for about as long as one call takes to come back, while
a window asks to wait until its end. From one rejection to the next a bucket lets through exactly
what has come back, so its pace is measured over all of that time, not over one span. The pace then
follows the clock: a late call takes nothing from those behind it.

A limit of calls at a time gives a place back whenever a call ends. It can be recognised if answers
take long: a rejection that names no time, then an answer to a call that was under way, and the next
call passes at once. So the first such answer lets one call through (`vacated`). If that is
rejected, only one request was lost. If not, every call that ends hands its place over to the next
one: first a few at a time, then at once; a call more is tried after clean rounds.

Before anything has shown a cap, what passed in the burst before the first rejection is a guess at
it: up to there slow start grows quickly, beyond it slowly again.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

from ...core.moment import Due, Moment
from ...core.record import record

__all__ = ("SlowStart",)

# Clean spans before more is tried than went well; and the most of them, where more went wrong.
_PATIENCE, _MOST_PATIENCE = 16, 64

# Answers after which more than a bucket lets through is believed not to come from one.
_CONVINCED = 4

# How much later than a rejection an answer comes where it shows more than the end of the same
# burst; and how often places that were left free are tried while it is not sure that they are
# ones, in seconds.
_LATER, _STEP = 0.5, 0.25

# Answers to calls that had a place after which they are surely places; rounds of them without a
# rejection before one call more is tried, and the most of these.
_SURE, _ROUNDS, _MOST_ROUNDS = 3, 2, 16

# Seconds without a call after which places are forgotten.
_KEPT = 120.0

# What rejections beyond every second answer add up to before these were no places after all.
_WRONG = 6

# A ramp ends when no call has had to wait for so many seconds.
_RAMP = 10.0

# In a ramp answers may take so many times as long as they did at best before calls are believed to
# queue at the target; and the share of each answer in what they take lately.
_LONGER, _SHARE = 1.5, 0.125

# Answers after which one more call may be under way: a quarter more are sent than are answered. As
# long as fewer calls than this are under way, one is enough.
_ANSWERS, _FEW = 4, 6

# Spans of a bucket that can be made up for, and the shortest span, in seconds.
_MADE_UP, _SHORTEST = 4, 0.05


class PauseBeforeCall(NamedTuple):
    """How long to wait before the next call.

    Args:
        delay: Seconds; 0 if it may go.
        wakes_early: Whether the answer to a call that is under way may end it.
        polls_for: Seconds in which nothing else does; `delay` is when to look for one.
    """

    delay: float
    wakes_early: bool = False
    polls_for: float = 0.0


@record()
class ConcurrencySlots:
    """Places that calls hand over to each other, where a target takes so many at a time.

    Args:
        asked: When the rejection without a time came, on the steady clock.
        is_open: Whether calls are let through by places; else an answer may show that there are.
        free: Places that the next calls may take.
        kept: Places that were left free and wait until it is surer that they are ones.
        step: How many of these are let go next, and
        ends: when.
        answered: Answers to calls that had a place, since the last rejection.
        sure: As many at all, up to where it is sure.
        wrong: Rejections beyond what answers excuse.
        rounds: Rounds of answers before one call more is tried.
    """

    asked: float
    is_open: bool = False
    free: int = 0
    kept: int = 0
    step: int = 1
    ends: Due | None = None
    answered: int = 0
    sure: int = 0
    wrong: int = 0
    rounds: int = _ROUNDS

    def turned(self, moment: Moment) -> ConcurrencySlots:
        """These places now: some of those kept are free, if it is time."""
        if not self.kept or self.ends is None or self.ends.left(moment) > 0:
            return self
        more = min(self.step, self.kept)
        return replace(
            self,
            free=self.free + more,
            kept=self.kept - more,
            step=2 * self.step,
            ends=moment.lease(_STEP),
        )

    def vacated(self, live: int, *, had_place: bool) -> ConcurrencySlots:
        """After a call has ended, while `live` others are under way."""
        if not had_place:
            if self.sure >= _SURE:
                return replace(self, free=self.free + 1)
            return replace(self, kept=self.kept + 1)
        answered, free = self.answered + 1, self.free + 1
        kept, rounds = self.kept, self.rounds
        if kept:
            kept, free = kept - 1, free + 1
        elif answered >= rounds * (live + 1):
            answered, free = 0, free + 1
        return replace(
            self,
            free=free,
            kept=kept,
            answered=answered,
            sure=min(self.sure + 1, _SURE),
            wrong=max(0, self.wrong - 1),
        )

    def refused(self) -> ConcurrencySlots | None:
        """After a call that had taken a place was rejected; None if there are no places."""
        wrong = self.wrong + 2
        if not self.sure or wrong > _WRONG:
            return None
        rounds = min(2 * self.rounds, _MOST_ROUNDS)
        return replace(self, answered=0, wrong=wrong, rounds=rounds)


@record()
class SlowStart:
    """How far a gate has opened since it was last shut.

    Args:
        allowed: Calls that may be under way at a time.
        cap: Calls that passed in an earlier span; None where none has shown it.
        span: Seconds in which `cap` calls pass.
        ends: When this span ends; None before it has begun.
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
        is_scout: Whether nothing was rejected: one call goes ahead to learn what answers state.
        is_ramp: Whether nothing was rejected: the target was down, and calls come back to it.
        places: Calls at a time, if the limit counts those; None if it does not, or if that is
            unknown.
        lately: Seconds that answers take lately, on average, in a ramp; 0 before the first.
        at_best: The least that `lately` has been.
        cut: When a failure last halved `allowed`: calls from before it halve nothing.
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
    is_scout: bool = False
    is_ramp: bool = False
    places: ConcurrencySlots | None = None
    lately: float = 0.0
    at_best: float = 0.0
    cut: Due | None = None

    @classmethod
    def ramp(cls, moment: Moment) -> SlowStart:
        """Four calls at a time, then more with every answer (`ramped`)."""
        return cls(4, None, 1.0, None, 0, 0, 0, moment.stated(_RAMP), is_ramp=True)

    def shrunk(self, lasted: float, moment: Moment) -> SlowStart:
        """After a call of a ramp failed, `lasted` seconds after it began: half as many at a time.

        Once for all calls that were under way together: they had one cause.
        """
        cut, quiet = self.cut, moment.stated(_RAMP)
        if cut is not None and cut.era == moment.era and moment.now - lasted < cut.at:
            return replace(self, quiet=quiet)
        allowed = max(1, self.allowed >> 1)
        return replace(self, allowed=allowed, answered=0, quiet=quiet, cut=moment.lease(0.0))

    def ramped(self, live: int, lasted: float, moment: Moment) -> SlowStart:
        """After a call of a ramp was answered in `lasted` seconds, while `live` are under way.

        One more may be, as long as answers take no longer than they did at best. Where they do,
        calls queue at the target, and more of them would time out there: one more per round then,
        in case that the target has become slower for another reason.
        """
        lately = self.lately + _SHARE * (lasted - self.lately) if self.lately else lasted
        at_best = min(self.at_best or lately, lately)
        answered, allowed = self.answered + 1, self.allowed
        is_queued = max(lately, lasted) > _LONGER * at_best
        enough = allowed if is_queued else _ANSWERS if allowed >= _FEW else 1
        if answered >= enough:
            answered, allowed = 0, min(allowed + 1, 1 << 20)
        is_awaited = live + 1 >= self.allowed
        return replace(
            self,
            answered=answered,
            allowed=allowed,
            lately=lately,
            at_best=at_best,
            quiet=moment.stated(_RAMP) if is_awaited else self.quiet,
        )

    @property
    def because(self) -> str:
        """Why calls wait, in a clause."""
        if self.is_ramp:
            return "coming back slowly after an outage"
        if self.places is not None and self.places.is_open:
            return "as many calls at a time as the target takes are under way"
        return "one call goes ahead" if self.is_scout else "opening slowly after a limit"

    @classmethod
    def scouting(cls, moment: Moment) -> SlowStart:
        """One call goes ahead alone; the others follow once it has been answered."""
        return cls(1, None, 1.0, None, 0, 0, 0, moment.stated(60), is_scout=True)

    @classmethod
    def after(
        cls, before: SlowStart | None, wait: float, moment: Moment, *, passed: int = 0
    ) -> SlowStart:
        """The next opening, once the gate has been shut for `wait` seconds."""
        if before is not None and (before.is_scout or before.is_ramp):
            before = None
        if before is not None and before.is_untried and not before.is_smooth:
            return before.again(wait, moment)
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

    @property
    def hands_over(self) -> bool:
        """Whether calls are let through as others end."""
        return self.places is not None and self.places.is_open

    def awaiting(self, moment: Moment) -> SlowStart:
        """This opening after a rejection without a time: an answer may show places."""
        return replace(self, places=ConcurrencySlots(moment.now))

    def may_be_vacated(self, moment: Moment) -> bool:
        """Whether an answer that comes now shows that a place may have become free."""
        places = self.places
        if places is None or places.is_open or not self.is_untried:
            return False
        return moment.now - places.asked >= _LATER

    def vacated(self, live: int, moment: Moment, *, had_place: bool) -> SlowStart:
        """After a call has ended, while `live` others are under way."""
        places = self.places
        if places is None:
            return self
        if not places.is_open:
            quiet = moment.stated(_KEPT)
            free = 0 if live else 1  # a call that is under way has taken it
            ends = moment.lease(_STEP)
            places = replace(places, is_open=True, free=free, ends=ends)
            return replace(self, places=places, quiet=quiet)
        return replace(self, places=places.vacated(live, had_place=had_place))

    @property
    def is_untried(self) -> bool:
        """Whether nothing has passed since the gate was shut."""
        return not self.answered and not self.clean

    def again(self, wait: float, moment: Moment) -> SlowStart:
        """This opening after its first call was rejected: the same closing, only longer."""
        elapsed = 0.0 if self.ends is None else self.elapsed(moment)
        span = self.span + elapsed + wait
        quiet = _quiet(wait, span, moment)
        return replace(self, allowed=1, span=span, ends=None, granted=0, passed=0, quiet=quiet)

    def elapsed(self, moment: Moment) -> float:
        """Seconds since this span began."""
        if self.ends is None or self.ends.era != moment.era:
            return self.span
        return max(0.0, self.span + moment.now - self.ends.at)

    def slowed(self, wait: float, moment: Moment) -> SlowStart:
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

    def refused(self, *, is_late: bool) -> SlowStart:
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

    def delayed(self, wait: float, left: float, moment: Moment, *, passed: int) -> SlowStart:
        """This opening, `wait` seconds off and not `left`, and after `passed` more had passed."""
        quiet = _quiet(wait, self.span, moment)
        if quiet.left(moment) < self.quiet.left(moment):
            quiet = self.quiet
        lasted = self.past_lasted + min(wait - left, self.span)
        return replace(self, quiet=quiet, guess=self.guess + passed, past_lasted=lasted)

    def begun(self, shut: Due, moment: Moment) -> SlowStart:
        """This opening, its first span counted from when the gate was to open.

        Not from the first call: that may come a little late, and a span measured from it would be
        too short by as much.
        """
        if self.ends is not None or shut.era != moment.era:
            return self
        opening = self.measured(shut.span)
        return replace(opening, ends=Due(shut.at + opening.span, opening.span, shut.era))

    def measured(self, wait: float) -> SlowStart:
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

    def turned(self, moment: Moment) -> SlowStart:
        """This opening now; a new span if the last one has ended."""
        if self.places is not None and self.places.is_open:
            return replace(self, places=self.places.turned(moment))
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
            # While calls wait for the next span there is more demand than has been seen to pass.
            quiet=_quiet(self.span, self.span, moment) if was_used_up else self.quiet,
        )

    def _turned_smoothly(self, cap: int, ends: Due, moment: Moment) -> SlowStart:
        late = max(0.0, moment.now - ends.at) if ends.era == moment.era else 0.0
        spans = 1 + int(late / self.span)
        # A call now and then is not held back, so it does not keep the pace.
        was_used_up, is_wanted = self.granted >= cap, self.granted >= 0
        clean = self.clean + 1 if was_used_up and self.answered else self.clean
        granted = self.granted - spans * cap
        unused = max(0, -_MADE_UP * cap - granted)  # no call asked for them
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

    def wait(self, live: int, age: float, moment: Moment) -> PauseBeforeCall:
        """How long to wait before the next call.

        Args:
            live: Calls under way.
            age: For how many seconds the oldest of them has been.
            moment: Now.
        """
        places = self.places
        if places is not None and places.is_open:
            if places.free > 0 or not live:
                return PauseBeforeCall(0.0)
            soon = places.ends.left(moment) if places.kept and places.ends is not None else 1.0
            return PauseBeforeCall(min(max(soon, 0.005), 1.0), wakes_early=True)
        if self.cap is not None and self.granted >= self.cap and self.ends is not None:
            return PauseBeforeCall(max(self.ends.left(moment), 0.001))
        if live >= self.allowed:
            # How long an answer takes is unknown; what has taken long may take a little longer.
            delay = min(max(age / 20, 0.005), 1.0)
            turns_in = inf if self.cap is None or self.ends is None else self.ends.left(moment)
            return PauseBeforeCall(delay, wakes_early=True, polls_for=turns_in)
        return PauseBeforeCall(0.0)

    def granting(self, count: int, moment: Moment) -> SlowStart:
        """After `count` more calls were let through."""
        if self.places is not None and self.places.is_open:
            places = replace(self.places, free=max(0, self.places.free - count))
            return replace(self, places=places, quiet=moment.stated(_KEPT))
        ends = moment.lease(self.span) if self.ends is None else self.ends
        granted, allowed = self.granted + count, self.allowed
        if self.cap is None and self.granted < self.guess <= granted:
            # A window holds no more than the guess. Where answers are slow, a bucket has filled.
            allowed = 1 if ends.left(moment) > 0 else max(1, self.guess >> 3)
        passed = self.passed + count
        return replace(self, granted=granted, ends=ends, allowed=allowed, passed=passed)

    def hearing(self, live: int, moment: Moment) -> SlowStart:
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
        # A server that states whole seconds may have meant almost one less.
        span, lasted = self.span, self.elapsed(moment)
        if answered >= _CONVINCED and span >= 2 and answered > 1 + (lasted + 1) / (span - 1):
            return self.guess
        return 2 if span >= 2 else max(1, min(3, int(lasted / span)))

    def hearing_late(self) -> SlowStart:
        """After a call from before the rejection was answered: one more had passed by then."""
        if self.cap is None or self.is_paced:
            return self
        return replace(self, cap=self.cap + 1)


def _quiet(wait: float, span: float, moment: Moment) -> Due:
    return moment.stated(wait + max(60.0, 10 * span))

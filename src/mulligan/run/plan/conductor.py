"""Drives the agents of a plan, each a run of its own, as the schedule says.

`schedule` decides what may run, from the agents' journals and the time; `runner` handles an agent's
failures. An agent that has to wait returns, and holds neither thread nor slot. Agents that this
process drives report each new state; journals are read for what other processes wrote, and after a
crash.
"""

from __future__ import annotations

import queue
from threading import Thread
from typing import TYPE_CHECKING

from ...core.redaction import clean
from ...errors import Fenced, GitStopped, MulliganError, SettingError
from ..git import interruptible
from ..journal.entries import UNASKED, AttemptBegun, AttemptEnd, RunCancelled
from ..journal.store import RunHeld
from ..process.stop import Stop
from .acceptance import progress_of
from .agent import PlanAgent
from .schedule import dispatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..attempt.options import DriveOptions
    from ..context import RunContext
    from ..journal.entries import How, Then
    from ..journal.state import RunState
    from ..journal.store import ClaimedRun
    from ..listeners import PlanListener
    from .model import KeptPlan
    from .report import Report
    from .schedule import Dispatch

__all__ = ("Conductor",)

EX_TEMPFAIL, _FAILED, _INTERRUPTED = 75, 1, 130

# How often the table is redrawn while nothing happens.
_TICK = 1.0
# Redraws before the user is told that another process holds an agent; most release it by then.
_NEWS_AFTER = 3
# In place of an agent's state: it is read from the journal before it is used.
_UNKNOWN: tuple[int, RunState | None] = (-1, None)


class Conductor:
    """Drives the run of one plan that this process has claimed.

    `waits` is told until when, if all agents that are left have to wait.
    """

    def __init__(
        self,
        context: RunContext,
        claimed: ClaimedRun,
        kept: KeptPlan,
        *,
        listener: PlanListener,
        how: DriveOptions,
        waits: Callable[[float], None],
    ) -> None:
        self._context, self._runs, self._platform = context, context.runs, context.platform
        self._claimed, self._plan, self._how, self._waits = claimed, kept.plan, how, waits
        self._listener, self._now = listener, context.platform.clock.wall
        self._agents = {
            key: PlanAgent(context, claimed.id, kept, phase, agent)
            for key, phase, agent in kept.plan.agents()
        }
        self._running: dict[str, tuple[Thread, Stop]] = {}
        self._driven: set[str] = set()
        self._held: dict[str, int] = {}
        # Each agent's state with the number of steps in its journal, so that only those are read
        # again which another process has changed. Written by the agents' threads as well.
        self._known: dict[str, tuple[int, RunState | None]] = dict.fromkeys(self._agents, (0, None))
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def go(self) -> int:
        """Drive the plan until it ends, is parked, or is stopped; returns the exit code."""
        with self._context.holding(self._claimed) as held:
            try:
                return self._loop(held.stop)
            except Fenced as fenced:
                if self._own_state().status != "cancelled":
                    because = f"run {self._claimed.id} was taken over by another process"
                    raise SettingError(because) from fenced
                return _INTERRUPTED
            finally:
                # If this fails, its agents are stopped, and a resume of the plan continues them.
                self._stop(list(self._running), "terminate")

    def _loop(self, own: Stop) -> int:
        begun = self._begin()
        while True:
            states = self._states()
            found = self._dispatch(states)
            if own.is_set:
                return self._pause(begun, own)
            self._cancel(found)
            for key in found.start:
                self._start(key, own)
            if found.stop:
                continue
            if found.is_success:
                return self._end(begun, states, "done", 0, "every phase succeeded")
            if found.is_over:
                because = "; ".join(f"{name}: {why}" for name, why in found.because.items())
                return self._end(begun, states, "stop", _FAILED, because or "a phase failed")
            if self._how.park == "exit" and not self._running and found.wake_at is not None:
                until, why = found.wake_at, "its agents wait"
                self._end(begun, states, "again", EX_TEMPFAIL, why, until=until)
                self._waits(until)
                return EX_TEMPFAIL
            self._wait(found.wake_at, own)

    def report(self) -> Report:
        """The report of the plan so far."""
        from .report import report

        states = self._states()
        found = self._dispatch(states)
        trees = {key: agent.tree for key, agent in self._agents.items()}
        made = report(self._plan, states, found.phases, found.because, trees)
        return made._replace(run=self._claimed.id)

    def _states(self) -> dict[str, RunState]:
        """The states of the agents that were started."""
        for key, count in self._changed().items():
            self._known[key] = count, self._agents[key].state(is_made=count > 0)
        return {key: state for key, (_, state) in self._known.items() if state is not None}

    def _changed(self) -> dict[str, int]:
        """The agents whose journal has another number of steps than is known, with that number."""
        steps = self._runs.steps_of(self._claimed.id)
        counts = {key: steps.get(agent.id, 0) for key, agent in self._agents.items()}
        return {key: count for key, count in counts.items() if count != self._known[key][0]}

    def _dispatch(self, states: dict[str, RunState]) -> Dispatch:
        now, limit = self._now(), self._plan.cost_limit
        is_spent = limit is not None and _spent(states) >= limit
        progress = progress_of(self._plan, states, self._running)
        found = dispatch(self._plan, progress, now=now, is_spent=is_spent)
        for key, state in states.items():
            self._listener.changed(key, state, now)
        self._listener.phases(found.phases, found.because)
        return found

    # What happens to agents

    def _start(self, key: str, own: Stop) -> None:
        stop = Stop(own)
        thread = Thread(target=self._drive, args=(key, stop), name=f"agent {key}")
        self._running[key] = thread, stop
        thread.start()

    def _drive(self, key: str, stop: Stop) -> None:
        agent = self._agents[key]
        how = self._how._replace(is_now=self._how.is_now and key not in self._driven)
        self._driven.add(key)
        states = {other: state for other, (_, state) in self._known.items() if state is not None}

        def changed(state: RunState) -> None:
            self._known[key] = state.steps, state
            self._listener.changed(key, state, self._now())

        try:
            with interruptible(stop):
                agent.drive(states.get(key), states, stop, changed, how)
        except GitStopped:  # a resume of the plan continues it
            return
        except RunHeld as held:  # by another conductor, perhaps one stopped by Ctrl-Z
            self._held[key] = self._held.get(key, 0) + 1
            if self._held[key] == _NEWS_AFTER:
                self._listener.held(key, f"{held}: end that process, or let it go on")
            self._platform.wait(stop, _TICK)
        except Exception as error:  # noqa: BLE001 -- else it would be started again endlessly
            is_ours = isinstance(error, MulliganError)
            why = str(error) if is_ours else f"{type(error).__name__}: {error}"
            agent.give_up(clean(why, 1000), self._now())
            self._known[key] = _UNKNOWN  # the journal may not have it
        finally:
            self._ended.put(key)

    def _cancel(self, found: Dispatch) -> None:
        """Stop and cancel the agents whose phase has failed."""
        if not found.stop:
            return
        self._stop([key for key in found.stop if key in self._running], "sibling")
        progress = progress_of(self._plan, self._states(), ())
        for key in found.stop:
            if progress[key].status in {"succeeded", "failed"}:
                continue  # it ended by itself meanwhile: keep that
            because = found.because.get(key.partition("/")[0], "its phase has ended")
            over = RunCancelled(self._now(), because, is_for_good=False)
            self._runs.cancel(self._agents[key].id, over)

    def _stop(self, keys: list[str], reason: str) -> None:
        """Stop agents: signal all of them before waiting for the first."""
        for _, stop in [self._running[key] for key in keys]:
            if not stop.is_set:  # a second request would shorten the grace
                stop.set(reason)
        for key in keys:
            self._join(key)

    def _join(self, key: str) -> None:
        thread, stop = self._running.pop(key)
        thread.join()
        stop.close()

    def _wait(self, wake_at: float | None, own: Stop) -> None:
        """Wait until an agent ends, the next one is due, or another process has changed one."""
        while not own.is_set:
            now = self._now()
            self._listener.tick(now)
            left = _TICK if wake_at is None else min(_TICK, max(0.0, wake_at - now))
            if self._running:
                try:
                    key = self._ended.get(timeout=max(left, 0.01))
                except queue.Empty:
                    pass
                else:
                    if key in self._running:
                        self._join(key)
                    return
            else:
                if wake_at is not None:
                    self._waits(wake_at)
                self._platform.wait(own, left)
            if (wake_at is not None and self._now() >= wake_at) or self._changed():
                return

    # What happens to the plan

    def _begin(self) -> RunState:
        """Write that it begins; returns its state."""
        state = self._own_state()
        how: How = "resume" if state.attempts else "start"
        begun = AttemptBegun(self._now(), state.attempts + 1, how, "", state.because)
        self._runs.write(self._claimed, begun, f"begun-{begun.attempt}")
        return state._replace(begun=(*state.begun, begun))

    def _pause(self, begun: RunState, own: Stop) -> int:
        self._stop(list(self._running), own.reason)
        states = self._states()
        if own.reason in UNASKED:  # not stopped by its user: the next worker continues it
            because = "its supervisor was stopped; the next one continues the run"
            return self._end(begun, states, "again", EX_TEMPFAIL, because, until=self._now())
        if own.reason != "fenced":
            self._end(begun, states, "pause", _INTERRUPTED, "interrupted")
        return _INTERRUPTED

    def _end(
        self,
        begun: RunState,
        states: dict[str, RunState],
        then: Then,
        code: int,
        because: str,
        *,
        until: float | None = None,
    ) -> int:
        """Write how it ended; returns the exit code."""
        spent = _spent(states) - (begun.cost or 0.0)
        used = sum([each.tokens or 0 for each in states.values()]) - (begun.tokens or 0)
        now = self._now()
        ended = AttemptEnd(
            now,
            begun.attempts,
            max(0.0, now - begun.begun[-1].at),
            cost=spent or None,
            tokens=used or None,
            is_work=True,
            then=then,
            until=until,
            exit=code,
            because=because,
        )
        self._runs.write(self._claimed, ended, f"ended-{begun.attempts}")
        return code

    def _own_state(self) -> RunState:
        state = self._runs.look(self._claimed.id)
        assert state is not None  # noqa: S101 -- this process holds it
        return state


def _spent(states: dict[str, RunState]) -> float:
    """US dollars that the agents cost so far."""
    return sum([state.cost or 0.0 for state in states.values()])

"""Drives the agents of a plan, each a run of its own, as the schedule says.

`schedule` decides what may run, from the agents' journals and the time; `runner` handles an agent's
failures. An agent that has to wait returns, and holds neither thread nor slot. After a crash the
agents' journals show what is left to do.
"""

from __future__ import annotations

import queue
from threading import Thread
from typing import TYPE_CHECKING

from ...core.redaction import clean
from ...errors import Fenced, GitStopped, MulliganError, SettingError
from ..attempt.options import WAIT_HERE
from ..git import interruptible
from ..journal.entries import UNASKED, AttemptBegun, AttemptEnd, RunCancelled
from ..journal.store import RunHeld
from ..process.stop import Stop
from .agent import PlanAgent
from .schedule import ScheduledAgent, ScheduledPhase, Standing, moves

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..attempt.options import DriveOptions
    from ..context import RunContext
    from ..journal.entries import How, Then
    from ..journal.state import RunState
    from ..journal.store import ClaimedRun
    from ..listeners import PlanListener
    from .model import Plan
    from .report import Report
    from .schedule import Moves

__all__ = ("Conductor", "orders_of")

EX_TEMPFAIL, _FAILED, _INTERRUPTED = 75, 1, 130

# How often the table is redrawn while nothing happens.
_TICK = 1.0
# Redraws before the user is told that another process holds an agent; most release it by then.
_NEWS_AFTER = 3


def orders_of(plan: Plan) -> tuple[ScheduledPhase, ...]:
    """The phases of a plan as the schedule sees them."""
    return tuple(
        ScheduledPhase(
            name=phase.name,
            agents=tuple(
                ScheduledAgent(f"{phase.name}/{each.name}", each.provider or each.program)
                for each in phase.agents
            ),
            needs=plan.needs(phase),
            is_parallel=phase.parallel,
            mode=phase.on_failure,
            minimum=phase.minimum or 1,
            slots=phase.concurrency,
        )
        for phase in plan.phases
    )


class Conductor:
    """Drives the run of one plan that this process has claimed.

    Args:
        context: The plan's context.
        claimed: The plan's run.
        plan: The plan.
        folder: The folder that the plan's file lies in.
        cwd: The folder that its agents run in, as far as the plan does not name one.
        listener: Told of everything that a user wants to see.
        how: How it is driven.
        waits: Told until when, where all that is left has to wait.
    """

    def __init__(
        self,
        context: RunContext,
        claimed: ClaimedRun,
        plan: Plan,
        *,
        folder: Path,
        cwd: Path,
        listener: PlanListener,
        how: DriveOptions = WAIT_HERE,
        waits: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._context, self._runs, self._platform = context, context.runs, context.platform
        self._claimed, self._plan, self._how, self._waits = claimed, plan, how, waits
        self._listener, self._now = listener, context.platform.clock.wall
        self._orders = orders_of(plan)
        self._agents = {
            f"{phase.name}/{agent.name}": PlanAgent(
                context, claimed.id, plan, place=(at, number), folder=folder, cwd=cwd
            )
            for at, phase in enumerate(plan.phases, 1)
            for number, agent in enumerate(phase.agents, 1)
        }
        self._running: dict[str, tuple[Thread, Stop]] = {}
        self._driven: set[str] = set()
        self._held: dict[str, int] = {}
        # Each agent's state with its number of steps, so that only changed ones are read again.
        self._known: dict[str, tuple[int, RunState | None]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def go(self) -> int:
        """Drive the plan until it ends, is parked, or is stopped; returns the exit code.

        Raises:
            SettingError: Another process has claimed the plan.
        """
        with self._context.holding(self._claimed) as held:
            try:
                return self._conducted(held.stop)
            except Fenced as fenced:
                if self._state().status != "cancelled":
                    because = f"run {self._claimed.id} was taken over by another process"
                    raise SettingError(because) from fenced
                return _INTERRUPTED
            finally:
                # If this fails, its agents are stopped, and a resume of the plan continues them.
                self._halt(list(self._running), "terminate")

    def _conducted(self, own: Stop) -> int:
        self._begin()
        while True:
            found = self._look()
            if own.is_set:
                return self._pause(own)
            self._end(found)
            for key in found.start:
                self._start(key, own)
            if found.stop or found.start:
                continue
            if found.is_over:
                return self._over(found)
            if self._how.park == "exit" and not self._running and found.wake_at is not None:
                return self._park(found.wake_at)
            self._wait(found.wake_at, own)

    def states(self) -> dict[str, RunState]:
        """The states of the agents that were started."""
        steps = self._runs.steps_of(self._claimed.id)
        for key, agent in self._agents.items():
            known, count = self._known.get(key), steps.get(agent.id, 0)
            if known is None or known[0] != count:
                self._known[key] = count, agent.state(is_made=count > 0)
        return {key: state for key, (_, state) in self._known.items() if state is not None}

    def report(self) -> Report:
        """The report of the plan so far."""
        from .report import report

        found = self._look()
        trees = {key: agent.tree for key, agent in self._agents.items()}
        made = report(self._plan, self.states(), found.phases, found.because, trees)
        return made._replace(run=self._claimed.id)

    def _look(self) -> Moves:
        states = self.states()
        now = self._now()
        standings = {
            key: Standing("running") if key in self._running else agent.standing(states.get(key))
            for key, agent in self._agents.items()
        }
        limit, spent = self._plan.cost_limit, 0.0
        if limit is not None:
            spent = sum(state.cost or 0.0 for state in states.values())
        found = moves(
            self._orders,
            standings,
            now=now,
            slots=self._plan.concurrency,
            providers=self._plan.providers,
            is_spent=limit is not None and spent >= limit,
        )
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
        try:
            with interruptible(stop):
                agent.drive(
                    stop,
                    changed=lambda state: self._listener.changed(key, state, self._now()),
                    how=how,
                )
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
        finally:
            self._ended.put(key)

    def _end(self, found: Moves) -> None:
        """End the agents whose phase has failed."""
        self._halt([key for key in found.stop if key in self._running], "sibling")
        for key in found.stop:
            agent = self._agents[key]
            if agent.standing(agent.state()).status in {"succeeded", "failed"}:
                continue  # it ended by itself meanwhile: keep that
            because = found.because.get(key.partition("/")[0], "its phase has ended")
            self._runs.cancel(agent.id, RunCancelled(self._now(), because, is_for_good=False))

    def _halt(self, keys: list[str], reason: str) -> None:
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
        self._known.pop(key, None)  # its end may not be in the journal

    def _wait(self, wake_at: float | None, own: Stop) -> None:
        """Wait until an agent ends, the next one is due, or a second has passed."""
        now = self._now()
        self._listener.tick(now)
        left = _TICK if wake_at is None else min(_TICK, max(0.0, wake_at - now))
        if not self._running:
            if wake_at is not None:
                self._waits(wake_at)
            self._platform.wait(own, left)
            return
        try:
            key = self._ended.get(timeout=max(left, 0.01))
        except queue.Empty:
            return
        if key in self._running:
            self._join(key)

    # What happens to the plan

    def _begin(self) -> None:
        state = self._state()
        how: How = "resume" if state.attempts else "start"
        begun = AttemptBegun(self._now(), state.attempts + 1, how, "", state.because)
        self._runs.write(self._claimed, begun, f"begun-{begun.attempt}")

    def _over(self, found: Moves) -> int:
        because = "; ".join(f"{name}: {why}" for name, why in found.because.items())
        if found.is_success:
            self._write("done", "every phase succeeded", 0)
        else:
            self._write("stop", because or "a phase failed", _FAILED)
        return 0 if found.is_success else _FAILED

    def _park(self, until: float) -> int:
        self._write("again", "its agents wait", EX_TEMPFAIL, until)
        self._waits(until)
        return EX_TEMPFAIL

    def _pause(self, own: Stop) -> int:
        self._halt(list(self._running), own.reason)
        if own.reason in UNASKED:  # not stopped by its user: the next worker continues it
            because = "its supervisor was stopped; the next one continues the run"
            self._write("again", because, EX_TEMPFAIL, self._now())
            return EX_TEMPFAIL
        if own.reason != "fenced":
            self._write("pause", "interrupted", _INTERRUPTED)
        return _INTERRUPTED

    def _write(self, then: Then, because: str, code: int, until: float | None = None) -> None:
        state = self._state()
        states = self.states()
        spent = sum(each.cost or 0.0 for each in states.values()) - (state.cost or 0.0)
        used = sum(each.tokens or 0 for each in states.values()) - (state.tokens or 0)
        now = self._now()
        ended = AttemptEnd(
            now,
            state.attempts,
            max(0.0, now - state.begun[-1].at),
            cost=spent or None,
            tokens=used or None,
            is_work=True,
            then=then,
            until=until,
            exit=code,
            because=because,
        )
        self._runs.write(self._claimed, ended, f"ended-{state.attempts}")

    def _state(self) -> RunState:
        state = self._runs.look(self._claimed.id)
        assert state is not None  # noqa: S101 -- this process holds it
        return state

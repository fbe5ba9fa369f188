"""The simulation itself: agents, processes and one server in virtual time.

Policies under test are the real code, run by an asyncio loop whose time jumps from event to event.
The same scenario, policy and seed give the same ledger.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..calls.clock import World
from ..calls.context import ambient_world, surroundings
from ..calls.settings import NOT_APPLIED
from ..core.moment import Moment
from ..stores.memory import Memory
from ..testing.clock import JumpingSelector, VirtualClock, VirtualLoop
from ..threads import inline
from .ledger import JobEnd, RequestRecord, SimulationLedger
from .randomness import SeededRandom
from .scenario import Scenario
from .server import Draw, Server, SimulatedJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Context

    from ..core.ports import Journal, Keys, State
    from .ledger import Verdict
    from .server import ServerReply

__all__ = (
    "Again",
    "Clients",
    "Contender",
    "PolicyContext",
    "SimulatedAnswer",
    "StatusError",
    "StreamCut",
    "simulate",
)

# Requests per job after which a run is stopped as a runaway.
_RUNAWAY = 60

# Jobs that begin together do so within so many seconds.
_TOGETHER = 0.01

# Objects between two garbage collections: the default of 700 is slow with many tasks.
_COLLECT = (100_000, 50, 100)

# Seconds that a process needs to start again after it died.
_RESTART = 60.0


# What an HTTP client returns and raises. The classes belong to no library: status, headers and body
# stand where SDKs put them, so that the classifier and the predicates of other libraries read them.


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """A successful answer."""

    headers: dict[str, str] = field(default_factory=dict)
    status_code: int = 200


class StatusError(Exception):
    """An answer with an error status."""

    def __init__(self, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
        super().__init__(f"Error code: {status} - {body}")
        self.status_code, self.headers, self.body = status, headers, body


class StreamCut(ConnectionError):
    """An answer that broke off in the middle."""


class Clients(Protocol):
    """The calls of one process under one policy."""

    async def call(self, send: Callable[[], Awaitable[Any]], job: SimulatedJob) -> Any:
        """Do `job` with as many requests as the policy allows; `send` makes one."""
        ...


class Contender(Protocol):
    """A policy under test."""

    @property
    def name(self) -> str: ...

    def clients(self, settings: PolicyContext) -> Clients:
        """The policy in one process; made inside the simulation's loop and world."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What a policy knows about where it is used."""

    scenario: Scenario
    process: int  # from 0
    clock: VirtualClock
    dice: random.Random  # of this process
    # Asks the server whether a job has been done: True, or `NOT_APPLIED`.
    verify: Callable[[SimulatedJob], Awaitable[Any]]


class Again(Exception):
    """Raised by clients for a job that was put off: it may be tried again at `at`."""

    def __init__(self, at: float) -> None:
        super().__init__(f"put off until {at:g}")
        self.at = at


class Unknown(Exception):
    """Raised by clients that do not know whether the job has been done."""


class _Dice:
    """A process's random numbers as guards roll them."""

    def __init__(self, dice: random.Random) -> None:
        self.roll = dice.random


class _ProcessStore:
    """One process's connection to a store that several processes share.

    A `Memory` itself would be the process's own, and its guards would share their objects.
    """

    url = "simulated:"

    def __init__(self, shared: Memory) -> None:
        self.state: State = shared.state
        self.keys: Keys = shared.keys
        self.journal: Journal = shared.journal
        self.scoped = shared.scoped

    def close(self) -> None:
        """Nothing to close."""


class _Selector(JumpingSelector):
    """Jumps through time until the horizon, and notices when nothing is left to wait for."""

    def __init__(self, clock: VirtualClock, horizon: float) -> None:
        super().__init__(clock)
        self.time, self.horizon = clock, horizon
        self.stop: Callable[[bool], None] = lambda _has_hung: None
        self.is_stopped = False

    def select(self, timeout: float | None = None) -> Any:
        if not self.is_stopped:
            if timeout is None:
                self.is_stopped = True
                self.stop(True)  # noqa: FBT003 -- the callback's one flag
                return []
            if self.time.now() + timeout > self.horizon:
                self.time.move_to(self.horizon)
                self.is_stopped = True
                self.stop(False)  # noqa: FBT003 -- the callback's one flag
                return []
        return super().select(timeout)


def simulate(
    scenario: Scenario,
    contender: Contender,
    *,
    seed: int = 0,
    progress: Callable[[float, int], None] | None = None,
) -> SimulationLedger:
    """Run `scenario` under one policy; the same seed gives the same ledger.

    `progress` is told the virtual time and the number of jobs that have ended, now and then.
    """
    return _Simulation(scenario, contender, seed, progress).run()


class _Simulation:
    def __init__(
        self,
        scenario: Scenario,
        contender: Contender,
        seed: int,
        progress: Callable[[float, int], None] | None,
    ) -> None:
        self.scenario, self.contender, self.seed = scenario, contender, seed
        self.clock = VirtualClock()
        self.random = SeededRandom(seed)
        self.server = Server(scenario, self.random, self.clock.wall())
        self.ledger = SimulationLedger()
        self.ended = 0
        self._progress = progress
        self._asked: dict[int, int] = {}  # requests so far, by job
        self._closed: dict[tuple[int, str], float] = {}  # until when, by process and model
        self._tasks: list[asyncio.Task[None]] = []
        self._memory = Memory(self._moment)
        self._is_over = False
        self._half = scenario.latency.network
        self._median = scenario.latency.median

    def _moment(self) -> Moment:
        return Moment(self.clock.now(), self.clock.wall())

    def run(self) -> SimulationLedger:
        selector = _Selector(self.clock, self.scenario.horizon)
        selector.stop = self._stop
        with _replaced(), inline():
            loop = VirtualLoop(self.clock, selector)
            try:
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    runner.run(self._main())
            finally:
                selector.is_stopped = True
        return self.ledger

    def _stop(self, has_hung: bool) -> None:  # noqa: FBT001 -- the selector's one flag
        self._is_over = True
        self.ledger.has_hung = has_hung and self.ended < len(self.ledger.jobs)
        for task in self._tasks:
            task.cancel()

    # Processes and agents

    async def _main(self) -> None:
        scenario = self.scenario
        jobs = scenario.jobs
        self.jobs = [
            SimulatedJob(number, model, jobs.tokens, jobs.effects, jobs.deadline)
            for number, model in enumerate(jobs.assigned)
        ]
        for number in range(jobs.count):
            together = self.random.roll(Draw.START, number) * _TOGETHER
            start = number / jobs.rate if jobs.rate else together
            self.ledger.jobs.append(JobEnd(number % scenario.agents, start))
        await self._life(0, scenario.dies_at or None)
        if scenario.dies_at:
            await asyncio.sleep(scenario.dies_at + _RESTART - self.clock.now())
            await self._life(1, None)

    async def _life(self, life: int, until: float | None) -> None:
        """What the processes do from one start to their end."""
        scenario = self.scenario
        worlds = [self._world(process, life) for process in range(scenario.processes)]
        agents = scenario.agents
        self._tasks = [
            asyncio.get_running_loop().create_task(
                self._agent(agent, clients), context=context.copy()
            )
            for agent in range(agents)
            for context, clients in [worlds[agent % len(worlds)]]
        ]
        if until is not None:
            _, pending = await asyncio.wait(self._tasks, timeout=until - self.clock.now())
            for task in pending:
                task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    def _world(self, process: int, life: int) -> tuple[Context, Clients]:
        shared = self.scenario.store == "shared"
        store: Any = _ProcessStore(self._memory) if shared else Memory(self._moment)
        dice = random.Random(f"{self.seed}/{process}/{life}")  # noqa: S311 -- repeatable on purpose
        context = copy_context()
        context.run(ambient_world.set, World(self.clock, _Dice(dice), store))

        settings = PolicyContext(self.scenario, process, self.clock, dice, self._verify)
        return context, context.run(self.contender.clients, settings)

    async def _agent(self, agent: int, clients: Clients) -> None:
        for number in range(agent, len(self.jobs), self.scenario.agents):
            end = self.ledger.jobs[number]
            if end.verdict != "pending":
                continue  # done before the process died
            delay = end.began_at - self.clock.now()
            if delay > 0:
                await asyncio.sleep(delay)
            elif number not in self._asked and number >= self.scenario.agents:
                end.began_at = self.clock.now()  # its agent was busy until now
            await self._do(agent, clients, self.jobs[number], end)

    async def _do(self, agent: int, clients: Clients, job: SimulatedJob, end: JobEnd) -> None:
        process = agent % self.scenario.processes

        async def send() -> SimulatedAnswer:
            return await self._send(agent, process, job)

        verdict: Verdict = "not done"
        while True:
            try:
                await clients.call(send, job)
                verdict = "done"
            except Again as put_off:
                if self.scenario.jobs.comes_back:
                    await asyncio.sleep(max(0.0, put_off.at - self.clock.now()))
                    continue
                end.because = str(put_off)
            except Unknown as error:
                verdict, end.because = "unknown", str(error)
            except Exception as error:  # noqa: BLE001 -- however a policy ends, its job has failed
                end.because = f"{type(error).__name__}: {error}"[:200]
            break
        if self._is_over:
            return  # stopped jobs have no end
        end.ended_at, end.verdict = self.clock.now(), verdict
        self.ended += 1
        if self._progress is not None and self.ended % 1000 == 0:
            self._progress(self.clock.now(), self.ended)

    # Requests

    async def _send(self, agent: int, process: int, job: SimulatedJob) -> SimulatedAnswer:
        """One request: it travels, the server answers, the answer travels back."""
        now, number = self.clock.now(), job.number
        attempt = self._asked.get(number, 0)
        self._asked[number] = attempt + 1
        request = RequestRecord(now, agent, process, number)
        self.ledger.requests.append(request)
        if len(self.ledger.requests) > _RUNAWAY * len(self.jobs) + 1000:
            self.ledger.has_run_away = True
            self._stop(has_hung=False)
        knower = 0 if self.scenario.store == "shared" else process
        known_closed = self._closed.get((knower, job.model), 0.0)
        if job.deadline:
            left = self.ledger.jobs[number].began_at + job.deadline - now
            request.is_late = left < self._median
        await asyncio.sleep(self.random.around(self._half, Draw.UP, number, attempt))
        arrived = request.arrived_at = self.clock.now()
        request.is_violation = arrived < known_closed - 1e-6
        reply = self.server.arrive(arrived, job, attempt)
        request.is_applied, request.tokens = reply.is_applied, reply.tokens
        self.ledger.jobs[number].effects += reply.is_applied
        down = self.random.around(self._half, Draw.DOWN, number, attempt)
        if reply.ending == "timeout":
            down = 0.0  # the client's own clock
        await asyncio.sleep(reply.takes + down)
        request.ended_at, request.ending = self.clock.now(), reply.ending
        request.status = reply.status
        if reply.closed_for is not None:
            key = knower, job.model
            self._closed[key] = max(self._closed.get(key, 0.0), arrived + reply.closed_for)
        return _heard(reply)

    async def _verify(self, job: SimulatedJob) -> Any:
        """Ask the server whether `job` has been done: one more request, which never fails."""
        now = self.clock.now()
        request = RequestRecord(
            now, job.number % self.scenario.agents, 0, job.number, ending="verify"
        )
        self.ledger.requests.append(request)
        await asyncio.sleep(2 * self._half)
        request.arrived_at, request.ended_at = now + self._half, self.clock.now()
        return True if self.ledger.jobs[job.number].effects else NOT_APPLIED


@contextmanager
def _replaced() -> Iterator[None]:
    """Make guards look for the world around their call; turn off logging of simulated failures."""
    log = logging.getLogger("mulligan")
    level, surroundings.exist = log.level, True
    log.setLevel(logging.CRITICAL + 1)
    threshold = gc.get_threshold()
    gc.set_threshold(*_COLLECT)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        log.setLevel(level)


def _heard(reply: ServerReply) -> SimulatedAnswer:
    """What the client makes of a reply."""
    match reply.ending:
        case "answered":
            return SimulatedAnswer(reply.headers, reply.status)
        case "status":
            raise StatusError(reply.status, reply.headers, reply.body)
        case "refused":
            raise ConnectionRefusedError("connection refused")
        case "lost":
            raise ConnectionResetError("connection reset by peer")
        case "timeout":
            raise TimeoutError("request timed out")
        case "cut":
            raise StreamCut("connection closed before the answer was complete")

"""Scenarios: a simulated server and its clients, as data.

A scenario says what the server does and what is asked of it. It says nothing about how clients
recover: that is what a simulation compares. `scenario_file` reads one from TOML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..core.schema import Seconds
from ..errors import SettingError

__all__ = ("FaultPeriod", "Hints", "Jobs", "Latency", "Scenario", "ServerLimit", "ServerQueue")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimit:
    """A limit of the server."""

    # A token bucket, a fixed window, a sliding log, or requests at a time.
    kind: Literal["bucket", "window", "sliding", "concurrency"]
    quota: int  # units in a full bucket or a window; for `concurrency`, requests at a time
    per: Seconds = 60.0  # seconds in which a bucket refills, or a window's length
    first: Seconds | None = None  # when the first window ends, in seconds; default: after `per`
    unit: Literal["requests", "tokens"] = "requests"  # what is counted
    model: str = ""  # counts only jobs for this model; all jobs where empty
    fee: float = 0.0  # units that a rejected request costs; buckets only

    def __post_init__(self) -> None:
        if self.quota < 1:
            raise SettingError(f"quota needs a whole number >= 1; got {self.quota}")
        _positive(self.per, "per")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPeriod:
    """A time in which the server fails requests."""

    end: Seconds = 0.0  # when it ends, in seconds; 0 for never
    start: Seconds = 0.0  # when it begins
    status: int = 503  # what requests are answered with; 0 for a refused connection
    share: float = 1.0  # the share of requests that fails, 1 for an outage
    retry_after: bool = False  # whether the answer states the time that is left

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise SettingError(f"share needs a number in (0, 1]; got {self.share:g}")
        if self.end and self.end <= self.start:
            raise SettingError(f"end needs to be after start={self.start:g}; got {self.end:g}")
        if self.status and not 400 <= self.status <= 599:
            raise SettingError(f"status needs 400 to 599, or 0; got {self.status}")

    def is_on(self, now: float) -> bool:
        return self.start <= now and (not self.end or now < self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerQueue:
    """A server with a queue: requests whose clients have left are served all the same."""

    rate: float  # requests served in a second
    slow_rate: float  # the same while it is slow
    slow_from: Seconds  # when it becomes slow
    slow_until: Seconds  # when it is fast again

    def __post_init__(self) -> None:
        if not 0 < self.slow_rate <= self.rate:
            raise SettingError(
                f"0 < slow_rate <= rate is needed; got slow_rate={self.slow_rate:g}, "
                f"rate={self.rate:g}"
            )
        if self.slow_until < self.slow_from:
            raise SettingError(
                f"slow_until needs to be after slow_from={self.slow_from:g}; "
                f"got {self.slow_until:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What the server states about its limits."""

    # The Retry-After of a rejection: the truth in whole seconds, a tenth of it, an hour whatever is
    # true, the truth times a random number from 0.3 to 3, or none.
    retry_after: Literal["exact", "short", "huge", "drifting", "none"] = "none"
    # Quota headers on every answer of the limiter, in this vendor's style.
    headers: Literal["none", "x-ratelimit", "anthropic", "ratelimit"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a request is under way."""

    network: Seconds = 0.1  # seconds each way, give or take a tenth
    service: Seconds = 0.0  # median seconds that the server takes for an admitted request
    # How these vary: not at all, evenly by a tenth, or log-normally.
    shape: Literal["fixed", "uniform", "lognormal"] = "uniform"
    spread: float = 0.5  # sigma of the log-normal

    @property
    def round_trip(self) -> float:
        """Seconds of the network there and back."""
        return 2 * self.network

    @property
    def median(self) -> float:
        """Median seconds of an admitted request."""
        return 2 * self.network + self.service


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """What there is to do."""

    count: int
    agents: int = 0  # each does its jobs one after another; 0 for one job per agent
    rate: float = 0.0  # jobs that begin in a second; 0 where all begin at once
    # What happens if a request of it is made twice.
    effects: Literal["read", "idempotent", "keyed", "unsafe"] = "read"
    tokens: float = 1000.0  # of a job
    models: dict[str, float] = field(default_factory=dict)  # the share of jobs for each
    deadline: Seconds = 0.0  # seconds for each job; 0 for none
    timeout: Seconds = 0.0  # seconds after which the client abandons a request; 0 for never
    lost: float = 0.0  # the share of requests whose reply is lost
    committed: float = 0.5  # of these, the share whose work was done
    cut: float = 0.0  # the share of answers that break off in the middle
    cut_at: float = 0.5  # how much of such an answer was delivered and billed
    # Whether a job that was put off until a stated time is tried again then, as a worker does.
    comes_back: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise SettingError(f"count needs a whole number >= 1; got {self.count}")
        if self.agents < 0 or self.rate < 0:
            raise SettingError("agents and rate need numbers >= 0")
        for name in ("lost", "committed", "cut", "cut_at"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(
                    f"{name} needs a number from 0 to 1; got {getattr(self, name):g}"
                )
        if self.models and abs(sum(self.models.values()) - 1) > 1e-6:
            raise SettingError(
                f"models needs shares that sum to 1; got {sum(self.models.values()):g}"
            )

    @property
    def assigned(self) -> list[str]:
        """The model of each job: every model gets its share, in turns."""
        if not self.models:
            return [""] * self.count
        given = dict.fromkeys(self.models, 0)
        order = []
        for number in range(1, self.count + 1):
            model = max(given, key=lambda name: self.models[name] * number - given[name])
            given[model] += 1
            order.append(model)
        return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A server, its clients, and what is asked of it."""

    name: str = "scenario"  # by default the name of its file
    shows: str = ""  # in a sentence
    optimum: str = ""  # where its T* and R* come from
    jobs: Jobs
    limits: tuple[ServerLimit, ...] = ()
    faults: tuple[FaultPeriod, ...] = ()
    queue: ServerQueue | None = None
    hints: Hints = Hints()
    latency: Latency = Latency()
    processes: int = 1  # that the agents are spread over
    store: Literal["shared", "apart"] = "apart"  # whether they share a store
    # When every process dies and is started again with what its store kept; 0 for never.
    dies_at: Seconds = 0.0
    horizon: Seconds = 3600.0  # seconds after which unfinished jobs count as not done

    # Read by pydantic when a file is validated against this class: an unknown key is an error.
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 -- pydantic's protocol

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise SettingError(f"processes needs a whole number >= 1; got {self.processes}")
        _positive(self.horizon, "horizon")

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return min(self.jobs.agents or self.jobs.count, self.jobs.count)

    @property
    def states_quota(self) -> bool:
        """Whether answers carry quota headers."""
        return bool(self.limits) and self.hints.headers != "none"


def _positive(value: float, name: str) -> None:
    if not 0 < value < float("inf"):
        raise SettingError(f"{name} needs more than 0 seconds; got {value:g}")

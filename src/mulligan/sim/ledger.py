"""The ledger of a simulation: every request and every job, as they happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ("JobEnd", "RequestRecord", "SimulationLedger")

# What the caller was left with. `unknown` is an honest answer where a reply was lost.
Verdict = Literal["done", "not done", "unknown", "pending"]


@dataclass(slots=True)
class RequestRecord:
    """One request."""

    sent_at: float
    agent: int
    process: int
    job: int
    arrived_at: float = float("inf")
    ended_at: float = float("inf")  # when the client had its answer or error
    # What the client saw; `cancelled` if it stopped waiting, `verify` if it asked whether an
    # earlier request had been applied.
    ending: str = "cancelled"
    status: int = 0  # 0 where there is none
    is_applied: bool = False  # whether the server did the work
    tokens: float = 0.0  # tokens that were billed
    # Whether the server had told this process, truthfully, that it was closed.
    is_violation: bool = False
    is_late: bool = False  # whether less time was left than a request usually takes


@dataclass(slots=True)
class JobEnd:
    """How one job ended."""

    agent: int
    began_at: float  # when it could begin
    ended_at: float = float("inf")  # when its caller had a result; infinity for never
    verdict: Verdict = "pending"  # what the caller was told
    effects: int = 0  # how often the work was done
    because: str = ""  # why it failed, in the client's words


@dataclass(slots=True)
class SimulationLedger:
    """What happened in one simulation."""

    requests: list[RequestRecord] = field(default_factory=list)  # in the order of sending
    jobs: list[JobEnd] = field(default_factory=list)
    has_hung: bool = False  # whether jobs were waiting for something that would never have come
    has_run_away: bool = False  # whether it was stopped because it sent requests without end

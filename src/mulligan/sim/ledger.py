"""The ledger of a simulation: every request and every job, as they happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ("JobEnd", "RequestRecord", "SimulationLedger")

# What the caller was left with. `unknown` is an honest answer where a reply was lost.
Verdict = Literal["done", "not done", "unknown", "pending"]


@dataclass(slots=True)
class RequestRecord:
    """One request.

    Args:
        sent_at: When the client sent it.
        arrived_at: When it arrived.
        ended_at: When the client had its answer or error; infinity if it stopped waiting.
        agent: The agent that sent it.
        process: In which process.
        job: For which job.
        ending: What the client saw; ``cancelled`` if it stopped waiting, ``verify`` if it asked
            whether an earlier request had been applied.
        status: The HTTP status; 0 where there is none.
        is_applied: Whether the server did the work.
        tokens: Tokens that were billed.
        is_violation: Whether the server had told this process, truthfully, that it was closed.
        is_late: Whether less time was left than a request usually takes.
    """

    sent_at: float
    agent: int
    process: int
    job: int
    arrived_at: float = float("inf")
    ended_at: float = float("inf")
    ending: str = "cancelled"
    status: int = 0
    is_applied: bool = False
    tokens: float = 0.0
    is_violation: bool = False
    is_late: bool = False


@dataclass(slots=True)
class JobEnd:
    """How one job ended.

    Args:
        agent: The agent that did it.
        began_at: When it could begin.
        ended_at: When its caller had a result; infinity for never.
        verdict: What the caller was told.
        effects: How often the work was done.
        because: Why it failed, in the client's words.
    """

    agent: int
    began_at: float
    ended_at: float = float("inf")
    verdict: Verdict = "pending"
    effects: int = 0
    because: str = ""


@dataclass(slots=True)
class SimulationLedger:
    """What happened in one simulation.

    Args:
        requests: Every request, in the order of sending.
        jobs: Every job.
        has_hung: Whether jobs were waiting for something that would never have come.
        has_run_away: Whether it was stopped because it sent requests without end.
    """

    requests: list[RequestRecord] = field(default_factory=list)
    jobs: list[JobEnd] = field(default_factory=list)
    has_hung: bool = False
    has_run_away: bool = False

"""What a client sees of a simulated server: answers, and the errors that an HTTP client raises.

The classes belong to no library. Status, headers and body stand where SDKs put them, so that
Mulligan's classifier and the predicates of other libraries find what they would find in reality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ("SimulatedAnswer", "StatusError", "StreamCut")


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """A successful answer.

    Args:
        headers: Its headers.
        status_code: Its status.
    """

    headers: dict[str, str] = field(default_factory=dict)
    status_code: int = 200


class StatusError(Exception):
    """An answer with an error status.

    Args:
        status: The HTTP status.
        headers: The answer's headers.
        body: The answer's body, parsed.
    """

    def __init__(self, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
        super().__init__(f"Error code: {status} - {body}")
        self.status_code, self.headers, self.body = status, headers, body


class StreamCut(ConnectionError):
    """An answer that broke off in the middle."""

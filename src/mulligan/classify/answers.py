"""Answers that are failures without an exception.

A response object is known by its shape: a status beside headers. Its body is looked at only where
the client has read it already, so no stream is consumed.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from .http import judge_evidence
from .shapes import response_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.failure import Failure, Kind

__all__ = ("judge_response",)


def judge_response(
    result: object, *, now: float | None = None, codes: Mapping[str, Kind] | None = None
) -> Failure | None:
    """The failure in a response of httpx, requests, aiohttp or the like; None for anything else.

    Args:
        result: What a call returned.
        now: Our wall clock in epoch seconds. Without it, instants are measured against the
            answer's own Date header, and are no hint where there is none; durations always are.
        codes: The caller's own codes in lower case.
    """
    try:
        evidence = response_evidence(result)
        if evidence is None:
            return None
        status, headers, body, text = evidence
        if status is not None and status < 400 and not body.is_error:
            return None
        clock = nan if now is None else now
        return judge_evidence(status, headers, body, text=text, now=clock, codes=codes)
    except Exception:  # noqa: BLE001 -- an object that only looks like a response is an answer
        return None

"""Guarded queries of claude-agent-sdk: a session that failed is resumed, not begun again.

The program that the SDK starts retries by itself. It is left two retries, because only it sees the
headers of a 429; the rest is the guard's. A failure ends with `ResultError`, which names the status
and the session: the next attempt resumes it, so no tool runs a second time from the start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..calls.clock import world
from ..calls.notes import attach, story
from ..classify.classifier import classifier
from ..core.failure import Effects, Reach
from ..core.hint import Hint
from ..errors import FailedAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..api.guard import Guard
    from ..core.failure import Failure

__all__ = ("guarded_query",)

_RETRIES = "CLAUDE_CODE_MAX_RETRIES"


async def guarded_query(
    guard: Guard, *, prompt: str, options: Any = None, resume_prompt: str = "Continue."
) -> AsyncIterator[Any]:
    """The messages of ``claude_agent_sdk.query``, over as many attempts as it takes.

    Args:
        guard: What decides about retries.
        prompt: What to ask.
        options: `ClaudeAgentOptions`.
        resume_prompt: What to say to a session that is resumed.

    Raises:
        ResultError: The last attempt failed; `mulligan.story` tells of all.
    """
    from claude_agent_sdk import ClaudeAgentOptions, RateLimitEvent, ResultError, query

    known = options or ClaudeAgentOptions()
    settings = replace(known, env={_RETRIES: "2", **known.env})
    resets_at: float | None = None
    try:
        # What is repeated is a session that goes on, not what it has done.
        async for attempt in guard.but(effects=Effects.IDEMPOTENT).attempts(
            "claude_agent_sdk.query"
        ):
            with attempt:
                try:
                    async for message in query(prompt=prompt, options=settings):
                        if isinstance(message, RateLimitEvent):
                            info = message.rate_limit_info
                            resets_at = info.resets_at if info.status == "rejected" else None
                        yield message
                except ResultError as error:
                    if error.session_id:
                        settings, prompt = replace(settings, resume=error.session_id), resume_prompt
                    raise FailedAnswer(_failure(error, resets_at), None) from error
    except FailedAnswer as over:
        if over.__cause__ is None:
            raise
        attach(over.__cause__, story(over))
        raise over.__cause__ from None


def _failure(error: Any, resets_at: float | None) -> Failure:
    """What a `ResultError` means, by the status of the API and the words of the program."""
    now = world().clock.wall()
    words = {"error": {"message": error.result or str(error)}}
    found = classifier.classify_answer(error.api_error_status, None, words, now=now)
    if found is None:
        found = classifier.classify(error, now=now)
    if found.kind.is_limit and resets_at is not None and found.hint is None:
        hint = Hint.after(resets_at - now, at=resets_at, source="rate_limit_event")
        found = replace(found, hint=hint)
    return replace(found, reach=Reach.ANSWERED)

"""Problem documents (RFC 9457) that tell clients whether and when to try again.

`is_retriable`, `retry_after_ms` and `suggestions` are extension members. Mulligan's classifier
reads the first two: a guard on the client's side does what the server says. A document never
contains the text of an exception that is not Mulligan's own: it may hold a secret.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from ..calls.clock import world
from ..calls.notes import story
from ..core.decisions import Ending
from ..core.duration import Duration, seconds
from ..core.record import record
from ..errors import (
    CircuitOpen,
    DeadlinePassed,
    KeyBusy,
    KeyReused,
    LimitReached,
    NotAdmitted,
    NotKept,
    SettingError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.story import Story
    from .asgi.messages import Receive, Scope, Send

__all__ = ("ProblemDocument", "problem")

# Statuses that pass by themselves. 500 is in neither set: it may be a bug or a bad moment, and a
# server that does not know leaves it to the client.
_PASSING = frozenset({408, 425, 429, 502, 503, 504})
_UNSAID = frozenset({500})

# What RFC 9457 defines; extensions have other names.
_MEMBERS = ("type", "title", "status", "detail", "instance")
_OURS = ("is_retriable", "retry_after_ms", "suggestions")

# Nothing is stated beyond this, in seconds: clients read it into numbers of their own.
_LONGEST = 10.0 * 365 * 86_400


@record(kw_only=True, eq=False)
class ProblemDocument:
    """A problem document with its status and headers; also an ASGI application that sends itself.

    Return it from a Starlette endpoint or exception handler, or write `status`, `headers` and
    `body` to a response of any other framework.

    Args:
        status: The HTTP status.
        document: The members of the document.
        retry_after: Seconds after which the client may try again, if that is known.
        links: Values of ``Link`` headers.
    """

    status: int
    document: dict[str, Any]
    retry_after: float | None = None
    links: tuple[str, ...] = ()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The response's headers, ``Retry-After`` in whole seconds, rounded up."""
        found = [("content-type", "application/problem+json"), ("content-language", "en")]
        if self.retry_after is not None:
            found.append(("retry-after", str(max(ceil(self.retry_after), 1))))
        found += [("link", each) for each in self.links]
        return found

    @property
    def body(self) -> bytes:
        """The document as JSON."""
        return json.dumps(self.document).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 -- an ASGI application
        body = self.body
        headers = [(name.encode(), value.encode("latin-1")) for name, value in self.headers]
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def problem(
    cause: int | BaseException,
    detail: str = "",
    *,
    type: str = "about:blank",  # noqa: A002 -- the member's name in RFC 9457
    title: str = "",
    instance: str = "",
    is_retriable: bool | None = None,
    retry_after: Duration | None = None,
    suggestions: Iterable[str] = (),
    **members: Any,
) -> ProblemDocument:
    """A problem document for a status, or for an error that Mulligan raised or let pass.

    Args:
        cause: A status between 400 and 599, or an exception. Of an exception only what Mulligan
            knows about it is told: which status fits, whether it passes, and when.
        detail: What happened this time, for people.
        type: A URI that names the problem.
        title: What kind of problem it is. Default: the phrase of the status.
        instance: A URI of this occurrence.
        is_retriable: Whether the same request may succeed later. Default: True for 408, 425,
            429, 502, 503 and 504, not stated for 500, else False.
        retry_after: When to try again, as a duration from now.
        suggestions: What the client can do about it, one sentence each.
        **members: Extension members of your own.

    Raises:
        SettingError: One of them is invalid.
    """
    said = _of_error(cause) if isinstance(cause, BaseException) else _Said(status=cause)
    status: object = said.status
    if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
        raise SettingError(f"a problem needs a status from 400 to 599, or an error; got {cause!r}")
    taken = sorted({*_MEMBERS, *_OURS} & members.keys())
    if taken:
        raise SettingError(f"{taken[0]!r} is a member of every problem; give it another name")
    if isinstance(suggestions, str):
        suggestions = (suggestions,)
    wait = said.retry_after if retry_after is None else seconds(retry_after, name="retry_after")
    if wait is not None:
        wait = min(wait, _LONGEST)
    if is_retriable is None:
        is_retriable = said.is_retriable
    if is_retriable is None and status not in _UNSAID:
        is_retriable = status in _PASSING
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
    document: dict[str, Any] = {
        "type": type,
        "title": title or said.title or phrase,
        "status": status,
        "detail": detail or said.detail,
        "instance": instance,
        "is_retriable": is_retriable,
        "retry_after_ms": None if wait is None else max(ceil(wait * 1000), 1),
        "suggestions": list(suggestions or said.suggestions),
        **members,
    }
    document = {key: value for key, value in document.items() if value not in ("", None, [])}
    try:
        json.dumps(document)
    except (TypeError, ValueError) as trouble:
        raise SettingError(f"the members of a problem need to be JSON; {trouble}") from None
    return ProblemDocument(status=status, document=document, retry_after=wait)


@record(kw_only=True)
class _Said:
    """What Mulligan knows about an error, for a client."""

    status: int
    title: str = ""
    detail: str = ""
    is_retriable: bool | None = None
    retry_after: float | None = None
    suggestions: tuple[str, ...] = ()


def _of_error(error: BaseException) -> _Said:  # noqa: PLR0911 -- one return per case
    match error:
        case KeyReused():
            return _Said(
                status=422,
                title="Idempotency key used for another operation",
                detail=error.because,
                suggestions=("send a new key with a new operation",),
            )
        case NotKept():
            return _Said(
                status=410,
                title="Done before, and its result was not kept",
                detail="the operation was done and is not done again under this key",
            )
        case StoreError():
            return _Said(status=503, title="Shared state is not available", retry_after=5.0)
        case KeyBusy():
            return _Said(
                status=409,
                title="The operation is being done",
                is_retriable=True,
                retry_after=1.0,
                suggestions=("send the same request again, with the same key",),
            )
        case CircuitOpen():
            wait = error.retry_in if error.retry_in < inf else None
            return _Said(status=503, title="A dependency is down", retry_after=wait)
        case LimitReached():
            wait = _until(error.until)
            return _Said(status=503, title="The limit of a dependency is reached", retry_after=wait)
        case DeadlinePassed():
            return _Said(status=504, title="Out of time")
        case NotAdmitted():
            return _Said(status=503)
        case _:
            tale = story(error)
            return _Said(status=500) if tale is None else _of_story(tale)


def _of_story(tale: Story) -> _Said:
    """A call to a dependency failed: whose fault it is, and when it can pass."""
    if tale.ending == Ending.UNKNOWN:
        return _Said(status=500)
    last = tale.tries[-1] if tale.tries else None
    wait = None if tale.retry_at is None else _until(tale.retry_at)
    title = "A dependency failed"
    if tale.ending == Ending.MAYBE_APPLIED:
        return _Said(
            status=502,
            title=title,
            detail="it is unknown whether the operation was applied",
            is_retriable=False,
            suggestions=("look whether it was applied before sending it again",),
        )
    if wait is not None:
        return _Said(status=503, title=title, retry_after=wait)
    status = 504 if last is not None and last.kind == "timeout" else 502
    # What would fail again at the dependency fails again here.
    is_retriable = None if Ending(tale.ending).is_exhaustion else False
    return _Said(status=status, title=title, is_retriable=is_retriable)


def _until(moment: float) -> float:
    """Seconds until `moment`, and one at least."""
    return max(moment - world().clock.wall(), 1.0)

"""Problem documents of the idempotency middleware: why a request was not executed.

The titles of 400, 409 and 422 are those of the draft (section 2.7).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..problem import ProblemDocument, problem
from .request_key import LONGEST_KEY

__all__ = ("Refusals",)

# A holder may end any moment; and a lease runs out only while others ask for it (once.claims).
_ASK_AGAIN = 1.0
_STORE_BACK = 5.0

_FORMAT = f"a string of 1 to {LONGEST_KEY} printable characters in quotes, such as a UUID"


class Refusals:
    """Answers to requests that are not executed.

    Args:
        documentation: The address of a page about keys; it becomes the problem's type and a link.
    """

    def __init__(self, documentation: str) -> None:
        self._documentation = documentation

    def missing(self) -> ProblemDocument:
        return self._made(
            400,
            "idempotency-key-missing",
            "Idempotency-Key is missing",
            "this operation needs an Idempotency-Key header, so that it can be repeated safely",
            suggestions=(f"send an Idempotency-Key: {_FORMAT}; the same one with every repeat",),
        )

    def malformed(self, what: str) -> ProblemDocument:
        return self._made(
            400,
            "idempotency-key-malformed",
            "Idempotency-Key is malformed",
            what,
            suggestions=(f"send one Idempotency-Key: {_FORMAT}",),
        )

    def busy(self) -> ProblemDocument:
        return self._made(
            409,
            "idempotency-key-in-use",
            "A request is outstanding for this Idempotency-Key",
            "a request with the same Idempotency-Key is being executed",
            is_retriable=True,
            retry_after=_ASK_AGAIN,
            suggestions=("send the same request again, with the same key",),
        )

    def reused(self) -> ProblemDocument:
        return self._made(
            422,
            "idempotency-key-reused",
            "Idempotency-Key is already used",
            "this Idempotency-Key was sent with another payload; nothing was executed",
            suggestions=("send a new key with a new operation",),
        )

    def too_large(self, limit: int) -> ProblemDocument:
        return self._made(
            413,
            "idempotency-request-too-large",
            "Request too large for an Idempotency-Key",
            f"the body of a request with a key has {limit} bytes at most; nothing was executed",
        )

    def not_kept(self, why: str) -> ProblemDocument:
        return self._made(
            410,
            "idempotency-response-not-kept",
            "The response was not kept",
            f"the request was executed and is not executed again; its response {why}",
            suggestions=("read the state of the resource",),
        )

    def store_down(self) -> ProblemDocument:
        return self._made(
            503,
            "idempotency-store-down",
            "Idempotency keys cannot be checked",
            "it is unknown whether this request was executed before; it was not executed now",
            retry_after=_STORE_BACK,
            suggestions=("send the same request again, with the same key",),
        )

    def _made(
        self, status: int, name: str, title: str, detail: str, **more: Any
    ) -> ProblemDocument:
        base = self._documentation
        made = problem(
            status,
            detail,
            type=f"{base}#{name}" if base else f"urn:mulligan:{name}",
            title=title,
            **more,
        )
        if not base:
            return made
        return replace(made, links=(f'<{base}>; rel="describedby"; type="text/html"',))

"""What the user can do about a failure that waiting does not mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.failure import Kind

if TYPE_CHECKING:
    from ..core.failure import Failure

__all__ = ("AGAIN", "HARMLESS", "advice_for")

HARMLESS = "if starting it anew is harmless: mulligan resume --restart"

AGAIN = ", then take the run up again"

_ADVICE = {
    Kind.AUTH: f"log in with {{program}} or mend its key{AGAIN}",
    Kind.BILLING: f"add credit or change the plan{AGAIN}",
    Kind.CONTEXT_LENGTH: "start anew with a shorter prompt, or in smaller steps",
    Kind.CONTENT_POLICY: "change the prompt: the provider will not answer this one",
    Kind.CLIENT: "mend the command or its settings: the same request fails again",
    Kind.UNKNOWN: "read its log; mulligan classify shows how its words are read",
}


def advice_for(failure: Failure, program: str) -> str:
    """What to do about `failure`; empty where waiting is all there is to do."""
    return _ADVICE.get(failure.kind, "").format(program=program)

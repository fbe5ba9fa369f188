"""What a model is told to do next after a tool has failed: one row for each class of failure.

`mulligan.story` is for programmers. A model can only correct arguments, choose another tool, read,
wait or stop, so every row names one of these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..core.failure import Kind

if TYPE_CHECKING:
    from ..core.failure import Failure

__all__ = ("ADVICE", "Action", "Advice", "Situation", "situation_of")

Action = Literal["none", "fix_arguments", "use_another_tool", "verify", "wait", "stop"]


class Situation(StrEnum):
    """What a failed tool call comes down to."""

    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"  # they do not fit the tool's schema
    VALIDATION = "validation"  # the service named the fields that are wrong
    CLIENT = "client"
    TOO_LARGE = "too_large"
    CONTENT = "content"
    AUTH = "auth"
    BILLING = "billing"
    CONFLICT = "conflict"
    LIMIT = "limit"
    SERVER = "server"
    NETWORK = "network"
    CIRCUIT_OPEN = "circuit_open"
    MAYBE_APPLIED = "maybe_applied"
    MAYBE_APPLIED_KEYED = "maybe_applied_keyed"
    BAD_ANSWER = "bad_answer"
    BUG = "bug"  # the tool's own code raised something that nothing is known about
    UNREADABLE = "unreadable"  # done, but what it returned cannot be shown
    NOT_RUN = "not_run"  # Mulligan itself could not go on: its store is down, the key is taken
    KEY_REUSED = "key_reused"
    REPEATED = "repeated"
    STUCK = "stuck"


class Advice(NamedTuple):
    """What to do next."""

    action: Action  # for programs
    text: str  # for the model; {tool}, {fields}, {when}, {reads}, {other}, {count} are filled in


ADVICE: dict[Situation, Advice] = {
    Situation.UNKNOWN_TOOL: Advice("use_another_tool", "Use one of the tools that exist: {other}."),
    Situation.BAD_ARGUMENTS: Advice(
        "fix_arguments", "Nothing was called. Correct {fields} and call {tool} again."
    ),
    Situation.VALIDATION: Advice(
        "fix_arguments", "It was rejected. Correct {fields} and call {tool} again."
    ),
    Situation.CLIENT: Advice(
        "fix_arguments",
        "It was rejected, and fails again if it is sent unchanged. Correct the arguments, or use "
        "another tool.",
    ),
    Situation.TOO_LARGE: Advice(
        "fix_arguments", "The input is too large. Send less, or split it into several calls."
    ),
    Situation.CONTENT: Advice(
        "stop", "It was refused because of its content. Do not send it again; tell the user."
    ),
    Situation.AUTH: Advice(
        "stop",
        "Stop. The credentials are missing, expired or not allowed to do this, and no call of "
        "yours can change that. Tell the user.",
    ),
    Situation.BILLING: Advice(
        "stop", "Stop. The account has no credit left, and waiting does not help. Tell the user."
    ),
    Situation.CONFLICT: Advice(
        "verify",
        "The present state does not allow it. Read the state with {reads}, then decide what to do.",
    ),
    Situation.LIMIT: Advice(
        "wait", "The service limits its callers. Do not call {tool} before {when}."
    ),
    Situation.SERVER: Advice(
        "use_another_tool",
        "The service fails at present. Do not repeat the call now: use another tool, or go on "
        "without it.",
    ),
    Situation.NETWORK: Advice(
        "use_another_tool",
        "The service could not be reached. Do not repeat the call now: use another tool, or go "
        "on without it.",
    ),
    Situation.CIRCUIT_OPEN: Advice(
        "use_another_tool",
        "The service is known to be down and was not called. Use {other}; do not call {tool} "
        "before {when}.",
    ),
    Situation.MAYBE_APPLIED: Advice(
        "verify",
        "It is unknown whether it was applied. Do not call {tool} again before you have checked "
        "with {reads} that it was not.",
    ),
    Situation.MAYBE_APPLIED_KEYED: Advice(
        "verify",
        "It is unknown whether it was applied. Check with {reads}. If it was not, call {tool} "
        "again with exactly the same arguments: that cannot apply it twice.",
    ),
    Situation.BAD_ANSWER: Advice(
        "use_another_tool", "The service's answer cannot be used. Use another tool."
    ),
    Situation.BUG: Advice(
        "use_another_tool",
        "The tool itself is broken for this call. Do not repeat it unchanged: use other "
        "arguments or another tool.",
    ),
    Situation.UNREADABLE: Advice(
        "verify",
        "The call itself succeeded: do not repeat it. If you need its result, use {reads}.",
    ),
    Situation.NOT_RUN: Advice(
        "wait", "Nothing was called. Go on with something else and call {tool} again later."
    ),
    Situation.KEY_REUSED: Advice(
        "verify",
        "Nothing was called: the same operation was begun earlier with other arguments. Check it "
        "with {reads}, and use its arguments or name another operation.",
    ),
    Situation.REPEATED: Advice(
        "fix_arguments",
        "The same call has failed {count} times. Do not send it unchanged: change the arguments, "
        "use another tool, or stop.",
    ),
    Situation.STUCK: Advice(
        "stop",
        "Stop. The same call has failed {count} times and was not made again. Do something else, "
        "or tell the user what is missing.",
    ),
}

_BY_KIND: dict[Kind, Situation] = {
    Kind.RATE_LIMIT: Situation.LIMIT,
    Kind.QUOTA: Situation.LIMIT,
    Kind.BILLING: Situation.BILLING,
    Kind.OVERLOADED: Situation.SERVER,
    Kind.SERVER: Situation.SERVER,
    Kind.NETWORK: Situation.NETWORK,
    Kind.TIMEOUT: Situation.NETWORK,
    Kind.AUTH: Situation.AUTH,
    Kind.CONTEXT_LENGTH: Situation.TOO_LARGE,
    Kind.CONTENT_POLICY: Situation.CONTENT,
    Kind.CLIENT: Situation.CLIENT,
    Kind.CONDITIONAL: Situation.CONFLICT,
    Kind.BAD_ANSWER: Situation.BAD_ANSWER,
    Kind.CIRCUIT_OPEN: Situation.CIRCUIT_OPEN,
    Kind.UNKNOWN: Situation.BUG,
}


def situation_of(failure: Failure) -> Situation:
    """The row of the table that answers `failure`, where it is known not to have been applied."""
    if failure.fields:
        return Situation.VALIDATION
    return _BY_KIND[failure.kind]

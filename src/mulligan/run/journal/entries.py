"""The steps of a run, as its journal has them.

    made ─▶ begun ─▶ ended ──done──▶ over
              ▲        ├──stop──▶ over
              │        ├──pause─▶ (interrupted: whoever resumes it begins again)
              └────────┴──again─▶ (waiting until a time; `moved` if that changes)

Each is written before it is taken: `begun` before the program starts, the end of an attempt with
what follows from it in one entry, so that nobody can find the one without the other. A `begun`
without its `ended` is an attempt whose supervisor died. `taken` stands between any two: somebody
else drives the run from there on.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = (
    "PLAN",
    "Begun",
    "Checked",
    "Delivered",
    "Ended",
    "How",
    "Made",
    "Moved",
    "Over",
    "Remark",
    "Step",
    "Taken",
    "Then",
    "packed",
    "unpacked",
)

# The name of the adapter that stands for none: the run is a plan.
PLAN = "plan"

How = Literal["start", "resume", "restart"]
Then = Literal["done", "again", "stop", "pause"]


class Made(NamedTuple):
    """A run was asked for.

    Args:
        at: When, in epoch seconds.
        agent: The adapter's name.
        command: The command, masked, for people; the real one lies in the run's folder.
        cwd: The folder it runs in.
        host: The machine that its sessions and files are on.
        user: The user id that it runs as.
        name: What the user calls it; may be empty.
        terms: How it was asked to be run, as plain data.
        variables: The names of the variables it was started with; never their values.
        holder: Who took it first.
        parent: The run of the plan that it belongs to; empty if it stands alone.
    """

    at: float
    agent: str
    command: str
    cwd: str
    host: str
    user: int
    name: str
    terms: dict[str, Any]
    variables: list[str]
    holder: str = ""
    parent: str = ""


class Taken(NamedTuple):
    """Somebody took the run in hand.

    Args:
        at: When, in epoch seconds.
        holder: Who.
    """

    at: float
    holder: str


class Begun(NamedTuple):
    """An attempt is about to be made.

    Args:
        at: When, in epoch seconds.
        attempt: Its number, counted from 1.
        how: Whether it starts the program anew or goes on with its session.
        session: The session, where it is known before.
        because: Why it is made this way.
    """

    at: float
    attempt: int
    how: How
    session: str
    because: str


class Ended(NamedTuple):
    """An attempt has ended, and this follows.

    Args:
        at: When, in epoch seconds.
        attempt: Its number.
        took: Seconds it took.
        code: Its exit code; None if a signal ended it, or nothing was started.
        signal: The signal that ended it.
        stopped: Why we ended it: ``idle``, ``futile``, ``timeout``, ``interrupt``; ``refused`` if
            it was not even begun; empty if we did not.
        session: The session it reported.
        cost: US dollars, as far as it said so.
        tokens: Tokens, as far as it said so.
        retries: How often it said that it tries again by itself.
        is_work: Whether a model answered in it.
        kind: The kind of failure; empty for none.
        status: The HTTP status behind it, where there was one.
        message: The words that decided it.
        reading: Why it was read that way, with its source.
        reset_at: When the limit was said to be over.
        then: What follows.
        until: When the next attempt is due, or when a stopped run could go on.
        exit: The exit code of the run, if this is its end.
        because: Why that follows.
        advice: What the user can do about it.
        is_probe: Whether the next attempt only finds out if the limit is over.
        is_lost: Whether the program knows nothing of the session it was to go on with.
    """

    at: float
    attempt: int
    took: float
    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    session: str = ""
    cost: float | None = None
    tokens: int | None = None
    retries: int = 0
    is_work: bool = False
    kind: str = ""
    status: int | None = None
    message: str = ""
    reading: str = ""
    reset_at: float | None = None
    then: Then = "done"
    until: float | None = None
    exit: int = 0
    because: str = ""
    advice: str = ""
    is_probe: bool = False
    is_lost: bool = False


class Moved(NamedTuple):
    """The next attempt is due at another time than was said.

    Args:
        at: When this was found out.
        until: When it is due now.
        because: Why.
        prompt: What the program is told when it goes on; empty for the usual.
    """

    at: float
    until: float
    because: str
    prompt: str = ""


class Checked(NamedTuple):
    """What an attempt did was verified.

    Args:
        at: When.
        attempt: The attempt.
        is_good: Whether the verification succeeded.
        said: The end of what it printed, fit to be shown.
    """

    at: float
    attempt: int
    is_good: bool
    said: str


class Delivered(NamedTuple):
    """What the run did was given to whoever asked for it: its answer, its changes.

    Args:
        at: When.
        trouble: Why it could not be verified or given; empty if it was given.
    """

    at: float
    trouble: str = ""


class Reopened(NamedTuple):
    """Somebody mended what was in the way: the work that was done is verified and given anew.

    Args:
        at: When.
    """

    at: float


class Remark(NamedTuple):
    """Something happened beside the run that its user should know.

    Args:
        at: When.
        text: What, fit to be shown.
    """

    at: float
    text: str


class Over(NamedTuple):
    """The run was ended by hand.

    Args:
        at: When.
        because: By what.
    """

    at: float
    because: str


Step: TypeAlias = (
    Made | Taken | Begun | Ended | Moved | Checked | Delivered | Reopened | Remark | Over
)
_KINDS: dict[str, Any] = {
    kind.__name__.lower(): kind
    for kind in (Made, Taken, Begun, Ended, Moved, Checked, Delivered, Reopened, Remark, Over)
}


def packed(step: Step) -> str:
    """`step` as JSON."""
    body = {"step": type(step).__name__.lower(), **step._asdict()}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def unpacked(body: str) -> Step:
    """The step that `body` says; fields that a later version added are left out."""
    data = json.loads(body)
    kind = _KINDS[data.pop("step")]
    step: Step = kind(**{name: value for name, value in data.items() if name in kind._fields})
    return step

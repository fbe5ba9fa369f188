"""Entries of a run's journal.

    made ─▶ begun ─▶ ended ──done──▶ the end, unless `reopened`
              ▲        ├──stop──▶ failed or limited: `moved` if its user resumes it
              │        ├──pause─▶ interrupted: `moved` if its user resumes it
              └────────┴──again─▶ waiting until a time; `moved` if that changes
    over: cancelled, at any time. Nothing follows it.

Each is written before it is taken: `begun` before the program starts, the end of an attempt with
what follows from it in one entry, so that neither is found without the other. A `begun`
without its `ended` is an attempt whose supervisor died. `taken` stands between any two: another
process drives the run from there on. What an older process writes after that is refused by the
journal, and `over` does the same to the process that drives the run. `at` of an entry is epoch
seconds.
"""

import json
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

__all__ = (
    "INTERRUPTED",
    "KIND_NAMES",
    "PLAN",
    "UNASKED",
    "WOKEN",
    "AttemptBegun",
    "AttemptEnd",
    "How",
    "JournalEntry",
    "RunAdopted",
    "RunCancelled",
    "RunMade",
    "RunRemark",
    "RunReopened",
    "RunRescheduled",
    "RunTaken",
    "Then",
    "WorkDelivered",
    "WorkVerified",
    "name_of",
    "packed",
    "unpacked",
)

# Stop reasons that no user asked for (shutdown, service restart): a worker continues the run.
UNASKED = frozenset({"terminate", "hangup"})

# `because` of a run that its user interrupted.
INTERRUPTED = "interrupted"

# `because` of a waiting run that is due now, regardless of its account's limits.
WOKEN = "woken by the user"

# The adapter's name of a run that is a plan.
PLAN = "plan"

How = Literal["start", "resume", "restart"]
Then = Literal["done", "again", "stop", "pause"]


class RunMade(NamedTuple):
    """A run was asked for.

    Args:
        at: When, in epoch seconds.
        agent: The adapter's name.
        command: The command, masked, for people; the real one lies in the run's folder.
        cwd: The folder it runs in.
        host: The machine that its sessions and files are on.
        user: The user id that it runs as.
        name: The name that the user gave it; may be empty.
        terms: Its `RunOptions`, as plain data.
        variables: The names of the variables it was started with; never their values.
        holder: The first holder.
        parent: The run of the plan that it belongs to; empty for none.
        machine: The id of the state folder that it was made in; empty in old journals.
        path: The PATH it was started with: a process that resumes it finds the same programs.
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
    machine: str = ""
    path: str = ""


class RunTaken(NamedTuple):
    """A process claimed the run."""

    at: float
    holder: str


class RunAdopted(NamedTuple):
    """The user moved the run to another machine or user.

    `machine` is the id of the state folder, `host` a name for people.
    """

    at: float
    machine: str
    host: str
    user: int


class AttemptBegun(NamedTuple):
    """An attempt is about to be made.

    Args:
        attempt: Its number, counted from 1.
        how: Whether it starts or restarts the program, or resumes its session.
        session: The session, where it is known before.
        because: Why it is made this way.
    """

    at: float
    attempt: int
    how: How
    session: str
    because: str


class AttemptEnd(NamedTuple):
    """An attempt has ended, with the decision on what follows.

    Args:
        at: When, in epoch seconds.
        attempt: Its number.
        took: Seconds it took.
        code: Its exit code; None if a signal ended it, or nothing was started.
        signal: The signal that ended it.
        stopped: Why we stopped it: ``idle``, ``futile``, ``timeout``, ``interrupt``, ``announced``
            (it would have slept for long), ``final`` (it kept repeating a request that cannot
            succeed); ``refused`` if it was not begun; empty if it ended by itself.
        session: The session it reported.
        cost: US dollars, as far as it said so.
        tokens: Tokens, as far as it said so.
        retries: How often it said that it tries again by itself.
        is_work: Whether a model answered in it.
        kind: The kind of failure; empty for none.
        status: The HTTP status behind it, where there was one.
        message: The words that decided it.
        reading: Why its output was classified that way, with the source.
        reset_at: The stated reset time of the limit.
        then: What follows.
        until: When the next attempt is due, or when a stopped run could go on.
        exit: The exit code of the run, if it ends here.
        because: Why that follows.
        advice: What the user can do about it.
        is_probe: Whether the next attempt only probes the limit.
        is_lost: Whether the program did not know the session that it was to resume.
        is_doubt: Whether it is unclear if it did its work.
        pending: The tool calls that were under way when it ended, in words fit to be shown;
            empty for none.
        is_unstarted: Whether the machine could not start the program for the moment.
        error: Why it could not be started, or watched to its end; `code` is then what a shell says.
        silent: Seconds without output after which it would have been stopped; None for any.
        announced: Seconds that it would have slept, as it announced.
        is_mute: Whether it printed nothing though it prints each step, so it has done nothing.
        has_answer: Whether it printed anything on stdout.
        is_unreported: Whether its structured output lacks the report of its end.
        is_session_named: Whether it named its session itself.
        ending: Why the run ended without success, a value of `Ending`; empty if it did not, and in
            journals of before.
        is_guess: Whether its kind is guessed from words that no pattern knows: other runs of the
            account are not told of such a limit.
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
    is_doubt: bool = False
    pending: str = ""
    is_unstarted: bool = False
    error: str = ""
    silent: float | None = None
    announced: float = 0.0
    is_mute: bool = False
    has_answer: bool = True
    is_unreported: bool = False
    is_session_named: bool = False
    ending: str = ""
    is_guess: bool = False


class RunRescheduled(NamedTuple):
    """The next attempt is due at another time.

    Args:
        until: When it is due now.
        because: Why.
        prompt: What the program is told when it goes on; empty for the usual.
        horizon: The longest reset to wait for from here on, in seconds; None for what held before.
    """

    at: float
    until: float
    because: str
    prompt: str = ""
    horizon: float | None = None


class WorkVerified(NamedTuple):
    """The work of an attempt was verified.

    `said` is the end of what the verification printed, fit to be shown.
    """

    at: float
    attempt: int
    is_good: bool
    said: str


class WorkDelivered(NamedTuple):
    """The run's answer and changes were delivered.

    `trouble` is why they could not be verified or delivered; empty if they were.
    """

    at: float
    trouble: str = ""


class RunReopened(NamedTuple):
    """An ended run continues: the only way out of ``done`` and ``cancelled``.

    Without `until` its work is done, and only verification and delivery are repeated. `prompt` is
    what the program is told when it goes on; empty for the usual.
    """

    at: float
    until: float | None = None
    because: str = ""
    prompt: str = ""


class RunRemark(NamedTuple):
    """A remark for the user about something beside the attempts, fit to be shown."""

    at: float
    text: str


class RunCancelled(NamedTuple):
    """The run was cancelled.

    Nothing can reopen it if `is_for_good`; not so for an agent whose phase has failed.
    """

    at: float
    because: str
    is_for_good: bool = True


JournalEntry: TypeAlias = (
    RunMade
    | RunTaken
    | RunAdopted
    | AttemptBegun
    | AttemptEnd
    | RunRescheduled
    | WorkVerified
    | WorkDelivered
    | RunReopened
    | RunRemark
    | RunCancelled
)
# The names of entries in the journal and in `--json`; never changed, old journals have them.
_KINDS: dict[str, Any] = {
    "made": RunMade,
    "taken": RunTaken,
    "adopted": RunAdopted,
    "begun": AttemptBegun,
    "ended": AttemptEnd,
    "moved": RunRescheduled,
    "checked": WorkVerified,
    "delivered": WorkDelivered,
    "reopened": RunReopened,
    "remark": RunRemark,
    "over": RunCancelled,
}
KIND_NAMES = {kind: name for name, kind in _KINDS.items()}


def name_of(step: JournalEntry) -> str:
    """The name of an entry's kind, as the journal has it."""
    return KIND_NAMES[type(step)]


def packed(step: JournalEntry) -> str:
    """`step` as JSON, in ASCII: a folder's name may be bytes that are not UTF-8."""
    body = {"step": name_of(step), **step._asdict()}
    return json.dumps(body, separators=(",", ":"))


def unpacked(body: str) -> JournalEntry:
    """The step that `body` says; fields that a later version added are left out.

    Raises:
        ValueError: It says none that this version knows, with the reason.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON: the journal is damaged") from None
    if not isinstance(data, dict) or not isinstance(data.get("step"), str):
        raise ValueError("it has no step: the journal is damaged")  # noqa: TRY004 -- bad data
    name = data.pop("step")
    if name not in _KINDS:
        raise ValueError(f"a newer mulligan wrote it (step {name[:40]!r}): upgrade to read it")
    kind = _KINDS[name]
    hints = _hints(kind)
    for field in kind._fields:
        if field not in data and field not in kind._field_defaults:
            raise ValueError(f"its step {name!r} has no {field!r}: the journal is damaged")
        if field in data and not _fits(data[field], hints[field]):
            raise ValueError(f"its step {name!r} has an unusable {field!r}: the journal is damaged")
    step: JournalEntry = kind(**{field: data[field] for field in kind._fields if field in data})
    return step


# Arithmetic with floats refuses larger integers; no count and no time is as large.
_TOO_LARGE = 1e300


@lru_cache(maxsize=32)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from JSON is of the annotated type."""
    origin = get_origin(hint)
    if origin is UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is list:
        return isinstance(value, list) and all(_fits(each, get_args(hint)[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict)
    if type(value) is int and hint in {float, int}:
        return abs(value) < _TOO_LARGE
    return value is None if hint is NoneType else type(value) is hint

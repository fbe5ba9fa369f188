"""Dead letters: records of calls that ran out of attempts, time or budget.

    waiting ──replay──▶ replaying ──▶ replayed
                            ├──▶ failed again ──replay──▶ …
                            └──▶ refused ──replay──▶ …

A letter says what failed and why; where its function was made replayable it also says with what it
was called. What is done about it later are marks behind it: the last one is its state.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from .failure import Failure
from .story import Story

__all__ = ("ExhaustedCall", "Letter", "Mark", "Record", "State", "UnderKey")

State: TypeAlias = Literal["waiting", "replaying", "replayed", "failed", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderKey:
    """The key that the call was made under, as a replay needs it.

    Args:
        key: The key, as it is sent to the server.
        part: Where its claim is kept.
        fingerprint: What it is used for.
        lease: Seconds until a silent holder has lost it.
        ttl: Seconds for which its result is kept.
    """

    key: str
    part: str
    fingerprint: str
    lease: float
    ttl: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExhaustedCall:
    """A call that ran out of something, as it ends.

    Args:
        function: What was called.
        args: With what.
        kwargs: With what, by name.
        error: What it ended with.
        story: How it went.
        failure: The last failure.
        effects: What repeating does.
        under: The key it was made under, if any.
        loop: ``asyncio`` or ``trio``, or empty for a plain call.
        at: When, in epoch seconds.
        since: How many calls had ended before its last attempt: letters about later ones were
            written inside of it.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    error: BaseException
    story: Story
    failure: Failure
    effects: str
    under: UnderKey | None
    loop: str
    at: float
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One call that ran out of something.

    Args:
        id: Which letter; they sort by time.
        at: When it was written, in epoch seconds.
        target: The dependency, or empty.
        function: Where the function is defined, ``shop.hooks.deliver``.
        name: What it is replayable as, or empty.
        arguments: What it was called with, by parameter, without secrets; None if not stored.
        secrets: Parameters that were left out, to be supplied again.
        unfit: Why it cannot be replayed, or empty.
        effects: What repeating does.
        loop: ``asyncio`` or ``trio``, or empty for a plain function.
        under: The key it was made under, if any.
        ending: Why the call ended.
        because: Why it ended, in one sentence.
        attempts: Attempts made.
        kind: What failed last.
        status: The HTTP status, if any.
        message: What was said, cleaned and masked.
        retry_at: When it could pass, in epoch seconds, if the server named it.
        home: The store it was written for, without its password; empty if that has no address.
    """

    id: str
    at: float
    target: str
    function: str
    name: str = ""
    arguments: dict[str, Any] | None = None
    secrets: tuple[str, ...] = ()
    unfit: str = ""
    effects: str = "unsafe"
    loop: str = ""
    under: UnderKey | None = None
    ending: str
    because: str
    attempts: int
    kind: str
    status: int | None = None
    message: str = ""
    retry_at: float | None = None
    home: str = ""

    def pack(self) -> str:
        """The letter as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def unpack(cls, text: str) -> Letter:
        """The letter that `pack` wrote; what a later version added is left out.

        Raises:
            ValueError: It did not write this.
        """
        data = _known(cls, json.loads(text))
        under = data.get("under")
        try:
            return cls(
                **{
                    **data,
                    "secrets": tuple(data.get("secrets", ())),
                    "under": None if under is None else UnderKey(**_known(UnderKey, under)),
                }
            )
        except TypeError as trouble:
            raise ValueError(f"no dead letter: {trouble}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What was done about a letter.

    Args:
        state: What it is now.
        at: Since when, in epoch seconds.
        because: Why, in one sentence.
    """

    state: State
    at: float
    because: str = ""

    def pack(self) -> str:
        """The mark as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def unpack(cls, text: str) -> Mark:
        """The mark that `pack` wrote.

        Raises:
            ValueError: It did not write this.
        """
        try:
            mark = cls(**_known(cls, json.loads(text)))
        except TypeError as trouble:
            raise ValueError(f"no mark of a dead letter: {trouble}") from None
        if mark.state not in get_args(State):
            raise ValueError(f"no state of a dead letter: {mark.state!r}")
        return mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A letter with everything that was done about it.

    Args:
        letter: The letter.
        marks: What was done, in order.
        spooled: Whether it waits in a local file because its store could not be written.
    """

    letter: Letter
    marks: tuple[Mark, ...] = ()
    spooled: bool = False

    @property
    def state(self) -> State:
        """What has become of it."""
        return self.marks[-1].state if self.marks else "waiting"


def _known(cls: Any, data: object) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"expected {cls.__name__}, found {str(data)[:80]!r}")  # noqa: TRY004 -- bad data, not a bad call
    names = {each.name for each in fields(cls)}
    return {str(name): value for name, value in data.items() if name in names}

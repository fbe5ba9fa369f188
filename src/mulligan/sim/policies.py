"""Policies that a simulation can run: Mulligan's own guards, and no retries at all.

A guard here is the product's own. What it is told about the scenario is what a user would tell it:
what a repeat does, a deadline, how to verify, where quota headers stand, what a call will cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.guard import Guard
from ..calls.notes import story
from ..classify.objects import headers_of
from ..config.loader import load_policy
from ..core.decisions import Ending
from ..core.presets import PRESETS, preset
from ..errors import SettingError
from .engine import Again, Unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .engine import Clients, PolicyContext
    from .server import SimulatedJob

__all__ = ("DEFAULT", "NO_RETRIES", "PATIENT", "Guarded", "NoRetries", "named")


@dataclass(frozen=True, slots=True)
class Guarded:
    """Calls behind a guard."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of the guard

    def clients(self, settings: PolicyContext) -> Clients:
        return _Guards(self.options, settings)


class _Guards:
    """The guards of one process: one for each model, as each model has limits of its own."""

    def __init__(self, options: Mapping[str, Any], settings: PolicyContext) -> None:
        self._options, self._settings = options, settings
        self._guards: dict[str, Guard] = {}

    def _guard(self, job: SimulatedJob) -> Guard:
        known = self._guards.get(job.model)
        if known is not None:
            return known
        scenario = self._settings.scenario
        options: dict[str, Any] = {"effects": job.effects}
        if scenario.states_quota:
            options["observe"] = headers_of
        if any(limit.unit == "tokens" for limit in scenario.limits):
            options["estimate"] = job.tokens
        if job.deadline:
            options["deadline"] = job.deadline
        if job.effects == "unsafe":
            options["verify"] = self._verify
        guard = Guard(f"simulated {job.model}".strip(), **{**options, **self._options})
        self._guards[job.model] = guard
        return guard

    async def _verify(self, _send: object, job: SimulatedJob) -> Any:
        return await self._settings.verify(job)

    async def call(self, send: Callable[[], Awaitable[Any]], job: SimulatedJob) -> Any:
        try:
            return await self._guard(job).acall(_request, send, job)
        except Exception as error:
            told = story(error)
            if told is not None and told.ending == Ending.MAYBE_APPLIED:
                raise Unknown(told.summary) from error
            if told is not None and told.retry_at is not None:
                clock = self._settings.clock
                raise Again(told.retry_at - clock.wall() + clock.now()) from error
            raise


async def _request(send: Callable[[], Awaitable[Any]], _job: SimulatedJob) -> Any:
    return await send()


@dataclass(frozen=True, slots=True)
class NoRetries:
    """Every job is one request."""

    name: str

    def clients(self, settings: PolicyContext) -> Clients:  # noqa: ARG002 -- as every Contender
        return self

    async def call(self, send: Callable[[], Awaitable[Any]], job: SimulatedJob) -> Any:  # noqa: ARG002 -- as all Clients
        return await send()


# A day: longer than any scenario that ships. So neither attempts nor time end a call.
_DAY = 86_400.0

DEFAULT = Guarded("default")
PATIENT = Guarded(
    "patient",
    {"attempts": 1_000_000, "patience": _DAY, "in_place": _DAY, "horizon": _DAY},
)
NO_RETRIES = NoRetries("none")

_OURS: dict[str, Guarded | NoRetries] = {each.name: each for each in (DEFAULT, PATIENT, NO_RETRIES)}


def named(name: str) -> Guarded | NoRetries:
    """The policy that `name` means: ``default``, ``patient``, ``none``, a preset or a TOML file.

    Raises:
        SettingError: There is no such policy.
        FileError: The file has an invalid setting.
    """
    if name in _OURS:
        return _OURS[name]
    if name.endswith(".toml") or "/" in name:
        return Guarded(Path(name).stem, {"policy": load_policy(name)})
    if name in PRESETS:
        return Guarded(name, {"policy": preset(name)})
    known = [*_OURS, *PRESETS]
    near = get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    raise SettingError(
        f"no policy {name!r}; there are {', '.join(dict.fromkeys(known))}, and TOML files{guess}"
    )

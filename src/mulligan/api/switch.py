"""Switch: asks the next provider if one is limited, down or failing; then a cache, then a default.

    first ──failed──▶ next … ──failed──▶ cached answer ──none──▶ default ──none──▶ wait, or raise
      └────────┴──answered──▶ answer

Each provider keeps its own guard, hence its own breaker and gate. A provider that is limited or
down is refused by them at once, without a request, and asked first again as soon as they let it.
A call that may have been applied is never made again elsewhere, unless repeating is harmless.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..calls.callables import ASYNC, ASYNC_GENERATOR, GENERATOR, function_kind, name_of
from ..calls.notes import annotate, caused, story
from ..core.decisions import Ending
from ..core.duration import Duration, seconds
from ..core.failure import Effects, Kind, Reach
from ..core.record import record
from ..core.story import Story
from ..errors import SettingError
from .answer_cache import AnswerCache
from .guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ("Switch", "SwitchAnswer")


class _NoDefault:
    """None is a value that a default may have."""

    def __repr__(self) -> str:
        return "no default"


_NO_DEFAULT: Any = _NoDefault()

# What another provider would refuse as well: the request itself is the mistake, or not wanted.
_STAYS = frozenset({Kind.CLIENT, Kind.CONTENT_POLICY, Kind.CONDITIONAL, Kind.UNKNOWN})

# A bug of the caller, or a cancellation: no other provider is tried.
_UNANSWERED = (Ending.UNKNOWN, Ending.CANCELLED)

_HARMLESS = (Effects.READ, Effects.IDEMPOTENT)


@record(kw_only=True)
class SwitchAnswer:
    """An answer, and where it comes from.

    Args:
        value: The answer.
        source: The target that answered, ``cache`` or ``default``.
        is_stale: Whether it is an answer of before, from the cache.
        age: Seconds since it was given, if it is from the cache.
        story: What failed before it; None if the first provider answered.
    """

    value: Any
    source: str
    is_stale: bool = False
    age: float | None = None
    story: Story | None = None


class _Route(NamedTuple):
    guard: Guard
    function: Callable[..., Any]
    quick: Guard  # the same, which is retried for a short time, and fails if the circuit is open

    @property
    def effects(self) -> Effects:
        return self.guard._engine.settings.effects  # noqa: SLF001 -- what it was given

    def patient(self, tale: Story) -> Guard | None:
        """A guard that goes on where the quick one stopped; None if it must not."""
        policy, engine = self.guard.policy, self.guard._engine  # noqa: SLF001 -- the same
        match tale.ending:
            case Ending.PARKED:
                # Without a gate the time that the server named would be forgotten.
                goes_on = engine.sharing is not None and engine.sharing.settings.gate is not None
            case Ending.DEADLINE:
                goes_on = policy.deadline is None  # else it was the guard's own
            case _:
                goes_on = tale.ending == Ending.REFUSED
        if not goes_on or policy.most_attempts is None:
            return self.guard if goes_on else None
        left = policy.most_attempts - tale.attempts
        if left < 1:
            return None
        options: Any = {**engine.options, "attempts": left}
        return Guard(self.guard.target, **options)


class _Failed(NamedTuple):
    error: Exception


class Switch:
    """Providers in order of preference, and what answers if none of them can.

    Args:
        *routes: A guard and the function to call under it, each with the same arguments. Each
            guard needs a target of its own.
        cache: Where good answers are remembered, to be given when every provider has failed.
        default: What to return, or a function of the error to call, when there is no other
            answer. Default: the error is raised.
        switch_after: How long one provider is retried after its first failure, waits included,
            before the next one is asked. If none of them answers, the one that comes back first
            is retried for as long as its own guard allows.

    Raises:
        SettingError: One of them is invalid.
    """

    def __init__(
        self,
        *routes: tuple[Guard, Callable[..., Any]],
        cache: AnswerCache | None = None,
        default: Any = _NO_DEFAULT,
        switch_after: Duration = 5.0,
    ) -> None:
        if not routes:
            raise SettingError("Switch needs at least one (guard, function)")
        wait = seconds(switch_after, name="switch_after")
        self._routes = [_route(each, wait) for each in routes]
        targets = [each.guard.target for each in self._routes]
        twice = sorted({each for each in targets if targets.count(each) > 1})
        if twice:
            raise SettingError(
                f"two providers are called {twice[0]!r} and would share one breaker; give each "
                f"guard a target of its own"
            )
        if cache is not None:
            self._check_cache(cache)
        if function_kind(default) == ASYNC:
            raise SettingError(
                "default needs a value or a plain function; got a coroutine function"
            )
        self._cache, self._default = cache, default
        self._source = targets[0]
        self._calls = [[each.guard.target, _path_of(each.function)] for each in self._routes]

    def _check_cache(self, cache: object) -> None:
        if not isinstance(cache, AnswerCache):
            raise SettingError(f"cache needs an AnswerCache; got {cache!r}")
        for each in self._routes:
            if each.effects not in _HARMLESS:
                raise SettingError(
                    f"a cached answer would say that {name_of(each.function)}() was done, and it "
                    f"was not; if it only reads, write Guard({each.guard.target!r}, "
                    f'effects="read")'
                )

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The answer of the first provider that has one."""
        return self.answer(*args, **kwargs).value

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Like `call`, awaited."""
        return (await self.aanswer(*args, **kwargs)).value

    def answer(self, *args: Any, **kwargs: Any) -> SwitchAnswer:
        """Like `call`, with where the answer comes from.

        Raises:
            Exception: The error of the last provider, with the story of all of them.
        """
        for each in self._routes:
            if function_kind(each.function) == ASYNC:
                raise SettingError(f"{name_of(each.function)}() is a coroutine; write acall")
        steps = self._steps(args, kwargs)
        outcome: Any = None
        while True:
            try:
                guard, function = steps.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            try:
                outcome = guard.call(function, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 -- judged by the steps
                outcome = _Failed(error)

    async def aanswer(self, *args: Any, **kwargs: Any) -> SwitchAnswer:
        """Like `answer`, awaited."""
        steps = self._steps(args, kwargs)
        outcome: Any = None
        while True:
            try:
                guard, function = steps.send(outcome)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            try:
                outcome = await guard.acall(function, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 -- judged by the steps
                outcome = _Failed(error)

    def _steps(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Generator[tuple[Guard, Callable[..., Any]], Any, SwitchAnswer]:
        """One call: yields what to call, and is sent what came of it."""
        key = "" if self._cache is None else self._cache.key_of(self._calls, args, kwargs)
        tales: list[Story] = []
        errors: list[Exception] = []
        coming: list[tuple[float, _Route, Guard]] = []  # who may come back, and when
        for route in self._routes:
            outcome = yield route.quick, route.function
            if not isinstance(outcome, _Failed):
                return self._answered(route, outcome, key, tales)
            errors.append(outcome.error)
            tales.append(_told(outcome.error))
            if not _moves(route, tales[-1]):
                coming.clear()
                break
            patient = route.patient(tales[-1])
            if patient is not None:
                retry_at = tales[-1].retry_at
                coming.append((inf if retry_at is None else retry_at, route, patient))
        if (known := self._known(key, tales)) is not None:
            return known
        if coming and self._default is _NO_DEFAULT:
            _, route, patient = min(coming, key=itemgetter(0))
            outcome = yield patient, route.function
            if not isinstance(outcome, _Failed):
                return self._answered(route, outcome, key, tales)
            errors.append(outcome.error)
            tales.append(_told(outcome.error))
        return self._otherwise(errors[-1], tales)

    def _known(self, key: str, tales: list[Story]) -> SwitchAnswer | None:
        """An answer of before, if there is one."""
        found = None if self._cache is None else self._cache.get(key)
        if found is None:
            return None
        self._now_from("cache", tales)
        return SwitchAnswer(
            value=found.value, source="cache", is_stale=True, age=found.age, story=_combined(tales)
        )

    def _otherwise(self, error: Exception, tales: list[Story]) -> SwitchAnswer:
        """The default, or the last error with the story of all."""
        tale = _combined(tales)
        if len(tales) > 1:
            annotate(error, tale, note=True)
        if self._default is _NO_DEFAULT:
            raise error
        self._now_from("default", tales)
        if not callable(self._default):
            return SwitchAnswer(value=self._default, source="default", story=tale)
        try:
            value = self._default(error)
        except Exception as second:
            caused(second, error)
            raise
        return SwitchAnswer(value=value, source="default", story=tale)

    def _answered(self, route: _Route, value: Any, key: str, tales: list[Story]) -> SwitchAnswer:
        if self._cache is not None:
            self._cache.put(key, value)
        self._now_from(route.guard.target, tales)
        story = _combined(tales) if tales else None
        return SwitchAnswer(value=value, source=route.guard.target, story=story)

    def _now_from(self, source: str, tales: list[Story]) -> None:
        """Log where answers come from, whenever that changes."""
        before, self._source = self._source, source
        if before == source:
            return
        import logging

        why = f" ({_reasons(tales)})" if tales else ""
        logging.getLogger("mulligan").warning(
            "answers come from %s now, before from %s%s", source, before, why
        )


def _route(given: object, wait: float) -> _Route:
    if not isinstance(given, tuple) or len(given) != 2:
        raise SettingError(f"Switch needs pairs (guard, function); got {given!r}")
    guard, function = given
    if not isinstance(guard, Guard) or not callable(function):
        raise SettingError(f"Switch needs pairs (guard, function); got {given!r}")
    if not guard.target:
        raise SettingError('a guard in a Switch needs the name of its target: Guard("anthropic")')
    if function_kind(function) in (GENERATOR, ASYNC_GENERATOR):
        raise SettingError(
            f"{name_of(function)}() is a stream; collect it in a function, and switch that"
        )
    options: Any = guard._engine.options  # noqa: SLF001 -- the same guard, less patient
    if "fallback" in options:
        raise SettingError(f"Guard({guard.target!r}) has a fallback; give it to Switch(default=…)")
    if options.get("dead_letters"):
        raise SettingError(
            f"Guard({guard.target!r}) keeps dead letters; a call that another provider answers "
            f"must not be replayed"
        )
    in_place, patience = min(wait, guard.policy.in_place), min(wait, guard.policy.bound)
    less: Any = {**options, "in_place": in_place, "patience": patience, "when_open": "fail"}
    return _Route(guard, function, Guard(guard.target, **less))


def _path_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", name_of(function))
    return f"{getattr(function, '__module__', '')}.{name}"


def _told(error: Exception) -> Story:
    """The story of `error`; raises `error` if no other provider should be tried."""
    tale = story(error)
    if tale is None or tale.ending in _UNANSWERED:
        raise error
    return tale


def _moves(route: _Route, tale: Story) -> bool:
    """Whether another provider may be asked."""
    is_harmless = route.effects in _HARMLESS
    if not is_harmless and any(each.reach == Reach.MAYBE_APPLIED for each in tale.tries):
        return False  # a key protects at one provider, not at two
    return not tale.tries or tale.tries[-1].kind not in _STAYS


def _combined(tales: list[Story]) -> Story:
    """One story of all providers that were asked."""
    if len(tales) == 1:
        return tales[0]
    times = [each.retry_at for each in tales if each.retry_at is not None]
    targets = dict.fromkeys(each.target for each in tales)
    return replace(
        tales[-1],
        target=" → ".join(targets),
        because=_reasons(tales),
        attempts=sum(each.attempts for each in tales),
        waited=sum(each.waited for each in tales),
        tries=tuple(attempt for each in tales for attempt in each.tries),
        retry_at=min(times, default=None),
    )


def _reasons(tales: list[Story]) -> str:
    return "; ".join(f"{each.target}: {each.because}" for each in tales)

"""Resolves the options of a guard into defaults (what callers share: `shared.guard_target`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from ..calls.callables import ASYNC, function_kind
from ..calls.settings import NO_FALLBACK, CallSettings
from ..classify.classifier import Classifier, classifier
from ..config.secret_variables import mask_environment_secrets
from ..core.backoff import Backoff, Fixed
from ..core.duration import is_number, seconds
from ..core.failure import Effects, Kind
from ..core.policy import Policy
from ..core.presets import preset
from ..core.redaction import presentable
from ..core.suggestions import nearest
from ..core.timeouts import SERVICE_TIMEOUTS, Timeouts
from ..errors import SettingError

if TYPE_CHECKING:
    from ..calls.settings import DeadLetterWriter
    from ..core.adaptive import RecentFailures
    from ..core.events import Event
    from ..shared.guard_target import GuardTarget, Observer
    from .options import GuardOptions

__all__ = ("listeners_of", "resolve")

# Before anything can fail: what fails is shown, and may have the caller's keys in it.
mask_environment_secrets()


def resolve(target: str, options: GuardOptions) -> tuple[CallSettings, GuardTarget | None]:
    """The settings for `options`, every omission filled in, and what is shared by them.

    Raises:
        SettingError: An invalid option.
    """
    policy = _policy(options)
    listeners = listeners_of(options.get("listeners", ()))
    _check(options)
    shares = _shares(target, policy, options)
    effects = _effects(policy, options.get("effects"))
    if options.get("resume") is not None and effects is Effects.UNSAFE:
        raise SettingError(
            "resume continues a stream by another request, and the effects of this guard are "
            'unsafe; if that request is harmless, say effects="read" or effects="idempotent"'
        )
    settings = CallSettings(
        policy=policy,
        effects=effects,
        classify=_classifier(policy, options).classify,
        unheard=_warn_once(),
        target=presentable(target, 200),
        listeners=listeners,
        wants_successes=any(getattr(each, "successes", False) for each in listeners),
        judge=options.get("judge"),
        verify=options.get("verify"),
        resume=options.get("resume"),
        fallback=options.get("fallback", NO_FALLBACK),
        on_exhausted=options.get("on_exhausted"),
        timeouts=_timeouts(policy, options.get("timeout")),
        timeout_to=options.get("timeout_to") or "",
        metadata=dict(options.get("metadata") or {}),
        admissions=tuple(options.get("admissions", ())),
        letters=_letters(options, policy),
        shared_target=shares,
        observe=_observer(shares, options),
        estimate=_estimate(shares, options),
        spent=None if shares is None else options.get("spent"),
        observe_error=None if shares is None else shares.observe_error,
        recent_failures=_recent_failures(policy) if options.get("adaptive") else None,
        clock=options.get("clock"),
        dice=options.get("dice"),
    )
    return settings, shares


def _shares(target: str, policy: Policy, options: GuardOptions) -> GuardTarget | None:
    """What the callers of `target` share; a call without one loads nothing for it."""
    if not target:
        return None
    from ..shared.guard_target import sharing

    return sharing(target, policy, options)


def _recent_failures(policy: Policy) -> RecentFailures:
    from ..core.adaptive import RecentFailures

    return RecentFailures(policy)


def _policy(options: GuardOptions) -> Policy:
    given = options.get("policy", "default")
    if isinstance(given, str):
        if given.endswith(".toml"):
            raise SettingError(
                f"policy takes a Policy or a preset's name; load the file yourself: "
                f"policy=mulligan.load_policy({given!r})"
            )
        given = preset(given)
    elif not isinstance(given, Policy):
        raise SettingError(f"policy needs a Policy or the name of a preset; got {given!r}")
    given = _with_service(given, options)
    return given.but(
        backoff=_backoff(options),
        attempts=options.get("attempts"),
        deadline=options.get("deadline"),
        patience=options.get("patience"),
        in_place=options.get("in_place"),
        horizon=options.get("horizon"),
        when_open=options.get("when_open"),
        validator=options.get("validator"),
    )


def _backoff(options: GuardOptions) -> Backoff | None:
    wait, backoff = options.get("wait"), options.get("backoff")
    if wait is None:
        return backoff
    if backoff is not None:
        raise SettingError("wait and backoff both say how long to wait; keep one")
    delay = seconds(wait, name="wait")
    if delay <= 0:
        raise SettingError(f"wait needs more than 0 s, or retries are a storm; got {wait!r}")
    return Fixed(wait=delay)


def _with_service(policy: Policy, options: GuardOptions) -> Policy:
    """`policy` with the timeouts of a service that was asked for, never of the target's name."""
    service = options.get("service")
    if service is None:
        return policy
    timeouts = SERVICE_TIMEOUTS.get(service)
    if timeouts is None:
        raise SettingError(f"no service {service!r}; {nearest(str(service), SERVICE_TIMEOUTS)}")
    if options.get("timeout") is not None:
        raise SettingError(
            f"service {service!r} and timeout both say how long an attempt may take; keep one"
        )
    return replace(policy, timeouts=timeouts)


def _observer(shares: GuardTarget | None, options: GuardOptions) -> Observer | None:
    read = options.get("observe")
    if read is None and options.get("spent") is not None:
        read = _nothing
    if read is None or shares is None:
        return None
    from ..shared.guard_target import Observer

    return Observer(read, shares.settings.gate)


def _nothing(_answer: object) -> None:
    """The headers of an answer that is read for what it took alone."""


def _estimate(shares: GuardTarget | None, options: GuardOptions) -> Callable[..., float] | None:
    given: Any = options.get("estimate")
    for name in ("estimate", "spent"):
        if options.get(name) is not None and shares is not None and shares.settings.gate is None:
            raise SettingError(f"{name} needs a gate; this guard has gate=False")
    if given is None or shares is None:
        return None
    if is_number(given) and 0 <= given < inf:
        return lambda *_args, **_kwargs: given
    if not callable(given) or function_kind(given) == ASYNC:
        raise SettingError(f"estimate needs a number >= 0 or a function; got {given!r}")
    return given  # type: ignore[no-any-return]


def _effects(policy: Policy, given: str | None) -> Effects:
    return policy.effects or Effects.UNSAFE if given is None else Effects.of(given)


def listeners_of(given: Any) -> tuple[Callable[[Event], None], ...]:
    """The listeners that were given, each held up by no more than a second in all."""
    listeners: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(callable(each) for each in listeners):
        raise SettingError(f"listeners needs callables that take an event; got {given!r}")
    if not listeners:
        return ()
    from ..telemetry.background import watched

    return tuple(map(watched, listeners))


def _check(options: GuardOptions) -> None:
    """Refuse what is not what its option needs, where it is written."""
    for name in ("judge", "verify", "resume", "on_exhausted", "validator", "observe", "spent"):
        function = options.get(name)
        if function is not None and not callable(function):
            raise SettingError(f"{name} needs a function; got {function!r}")
        if name not in ("verify", "resume") and function_kind(function) == ASYNC:
            raise SettingError(f"{name} needs a plain function; got a coroutine function")
    metadata = options.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise SettingError(f"metadata needs a mapping; got {metadata!r}")
    for name, method in (("clock", "now"), ("dice", "roll")):
        part = options.get(name)
        if part is not None and not callable(getattr(part, method, None)):
            raise SettingError(f"{name} needs an object with {method}(); got {part!r}")


def _letters(options: GuardOptions, policy: Policy) -> DeadLetterWriter | None:
    given = options.get("dead_letters")
    if given is None or given is False:
        return None
    from ..dead_letters.writer import GuardLetterWriter

    return GuardLetterWriter(None if given is True else given, options.get("store"), policy.store)


def _timeouts(policy: Policy, given: Any) -> Timeouts | None:
    if given is None:
        return policy.timeouts
    if not isinstance(given, Timeouts):
        return Timeouts(total=given)
    for part in ("connect", "read", "write", "pool"):
        if getattr(given, part) is not None:
            raise SettingError(
                f"timeout bounds whole attempts: total and shrink; give {part} to the client"
            )
    return given


def _classifier(policy: Policy, options: GuardOptions) -> Classifier:
    known: Classifier = options.get("classifier") or classifier
    if not isinstance(known, Classifier):
        raise SettingError(
            f"classifier needs a Classifier, such as mulligan.classifier.adding(…); got {known!r}"
        )
    if policy.codes:
        known = known.adding(codes=policy.codes)
    on = options.get("on")
    if on:
        types = on if isinstance(on, tuple) else (on,)
        for each in types:
            if not (isinstance(each, type) and issubclass(each, Exception)):  # type: ignore[redundant-expr]
                raise SettingError(f"on needs exception classes; got {each!r}")
        known = known.adding(types=dict.fromkeys(types, Kind.SERVER))
    return known


def _warn_once() -> Callable[[Event], None]:
    """A function that logs the first event of a kind, for a guard without listeners."""
    told: set[type] = set()

    def warn(event: Event) -> None:
        if type(event) not in told:
            told.add(type(event))
            from ..telemetry.logging import log

            log(event)

    return warn

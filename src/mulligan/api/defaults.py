"""Where defaults are wired: policy, classifier, and who is told when nobody listens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..classify.classifier import Classifier, classifier
from ..core.failure import Effects, Failure, Kind
from ..core.policy import Policy
from ..core.presets import preset
from ..core.timeouts import Timeouts
from ..drivers.habits import Habits
from ..drivers.settings import NO_FALLBACK, Settings
from ..errors import SettingError

if TYPE_CHECKING:
    from ..core.events import Ended
    from .options import GuardOptions

__all__ = ("resolve",)


def resolve(target: str, options: GuardOptions) -> Settings:
    """The settings for `options`, every omission filled in.

    Raises:
        SettingError: An option that cannot be meant.
    """
    policy = _policy(options)
    listeners = tuple(options.get("listeners", ()))
    for listener in listeners:
        if not callable(listener):
            raise SettingError(f"listeners needs callables that take an event; got {listener!r}")
    return Settings(
        policy=policy,
        effects=_effects(policy, options.get("effects")),
        classify=_classifier(policy, options).classify,
        unheard=_warn_once(),
        target=target,
        listeners=listeners,
        wants_successes=any(getattr(each, "successes", False) for each in listeners),
        judge=options.get("judge"),
        verify=options.get("verify"),
        fallback=options.get("fallback", NO_FALLBACK),
        on_exhausted=options.get("on_exhausted"),
        timeouts=_timeouts(policy, options.get("timeout")),
        timeout_to=options.get("timeout_to") or "",
        metadata=dict(options.get("metadata") or {}),
        admissions=tuple(options.get("admissions", ())),
        habits=Habits(policy) if options.get("adaptive") else None,
        clock=options.get("clock"),
        dice=options.get("dice"),
    )


def _policy(options: GuardOptions) -> Policy:
    given = options.get("policy", "default")
    if isinstance(given, str):
        given = preset(given)
    elif not isinstance(given, Policy):
        raise SettingError(f"policy needs a Policy or the name of a preset; got {given!r}")
    return given.but(
        attempts=options.get("attempts"),
        deadline=options.get("deadline"),
        in_place=options.get("in_place"),
        horizon=options.get("horizon"),
        validator=options.get("validator"),
    )


def _effects(policy: Policy, given: str | None) -> Effects:
    if given is None:
        return policy.effects or Effects.UNSAFE
    try:
        return Effects(given)
    except ValueError:
        raise SettingError(f"effects needs one of {', '.join(Effects)}; got {given!r}") from None


def _timeouts(policy: Policy, given: Any) -> Timeouts | None:
    if given is None:
        return policy.timeouts
    return given if isinstance(given, Timeouts) else Timeouts(total=given)


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


def _warn_once() -> Any:
    """A function that logs the first exhaustion it is told of, for guards nobody listens to."""
    told: list[Failure] = []

    def warn(event: Ended) -> None:
        if not told:
            told.append(event.failure)
            from ..telemetry.logging import log

            log(event)

    return warn

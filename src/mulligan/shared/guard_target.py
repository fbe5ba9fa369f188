"""The options of a guard that concern shared state.

An option wins over the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..calls.context import ambient_world
from ..classify.objects import quotas_in_error
from ..classify.quotas import Quota, quotas
from ..core.presets import preset
from ..core.shared_settings import Breaker, Gate, Tokens
from ..errors import SettingError
from .admission import TargetCall
from .gate.fast_path import QuotaFastPath
from .target import store_for, target_for
from .targets import TargetSettings, TargetState, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..api.options import GuardOptions
    from ..core.policy import Policy
    from ..core.ports import Store
    from .target import Target

__all__ = ("GuardTarget", "Observer", "sharing")


def sharing(target: str, policy: Policy, options: GuardOptions) -> GuardTarget | None:
    """What a guard of `target` shares; None if there is nothing.

    Raises:
        SettingError: An option is invalid.
    """
    scope: object = options.get("scope", "")
    if not isinstance(scope, str):
        raise SettingError(f"scope needs the name of an account; got {scope!r}")
    settings = _settings(target, policy, options)
    if settings == TargetSettings(None, None, None):
        return None
    waits = policy.when_open != "fail"
    if policy.when_open is None and "fallback" in options:
        waits = False  # there is an answer at once
    return GuardTarget(target, scope, options.get("store"), policy.store, settings, waits=waits)


def _settings(target: str, policy: Policy, options: GuardOptions) -> TargetSettings:
    breaker = policy.breakers.get(target, policy.breaker)
    settings = TargetSettings(
        breaker=_wanted("breaker", Breaker, options.get("breaker", True), breaker),
        gate=_wanted("gate", Gate, options.get("gate", True), policy.gate),
        tokens=_wanted("tokens", Tokens, options.get("tokens", True), policy.tokens),
    )
    if options.get("observe") is None or settings.gate is None:
        return settings
    # A guard that reads answers sends one call ahead, to learn the limits.
    return settings._replace(gate=replace(settings.gate, scout=True))


def _wanted(name: str, kind: type, given: object, usual: Any) -> Any:
    if isinstance(given, kind):
        return given
    if not isinstance(given, bool):
        raise SettingError(f"{name} needs True, False or {kind.__name__}(…); got {given!r}")
    return usual if given else None


class GuardTarget:
    """What one guard shares, wherever it is called.

    Args:
        target: The dependency.
        scope: The account.
        store: The guard's option.
        otherwise: What the policy says about the store.
        settings: The guard's.
        waits: Whether its calls wait for a target that is down, and for retry tokens.
    """

    def __init__(
        self,
        target: str,
        scope: str,
        store: Store | str | None,
        otherwise: str,
        settings: TargetSettings,
        *,
        waits: bool = True,
    ) -> None:
        self.settings, self._waits = settings, waits
        self.observe_error = None if settings.gate is None else quotas_in_error
        self._names = target, scope
        self._store, self._otherwise = store, otherwise
        self.target: Target = target_for(target, scope, store, otherwise)

    def __call__(self, deadline_at: float) -> TargetCall:
        """The target, in the world around a call that ends by `deadline_at`."""
        state = self._state()
        # Guards that met before have agreed; in a test's world the first one's settings count.
        if state.joined is not self.settings:
            state.join(self.settings, is_strict=False)
        return TargetCall(state, self.settings, waits=self._waits, deadline_at=deadline_at)

    def join(self) -> None:
        """Agree with the other guards of the target.

        Raises:
            SettingError: They want the same with other settings.
        """
        self._state().join(self.settings)

    def adjust(self, **settings: Breaker | Gate | Tokens | None) -> None:
        """Change the settings of all guards of the target, from now on."""
        for name, value in settings.items():
            if value is not None:
                self._state().adjust(name, value)

    def _state(self) -> TargetState:
        world = ambient_world.get() if self._store is None else None
        if (world is None or world.store is None) and self.target.state is not None:
            return self.target.state
        home = targets_of(store_for(self._store, self._otherwise))
        target = home.get(*self._names)
        if target.state is not None:
            return target.state
        # Two guards of a target that fail at the same time must find the same state.
        with home.lock:
            if target.state is None:
                made = TargetState(target, home)
                if target.has_default:
                    made.join(_settings(target.name, preset("default"), {}))
                target.state = made
            return target.state


class Observer:
    """Reads the limits that an answer states.

    Args:
        read: The user's: answer → headers, or the quotas themselves.
        gate: The gate that is told, if there is one.
    """

    def __init__(self, read: Callable[[Any], Any], gate: Gate | None) -> None:
        self._read = read
        self.fast_path = QuotaFastPath(read, 0.0 if gate is None else max(gate.keep, gate.high))
        self.__name__ = getattr(read, "__name__", type(read).__name__)

    def __call__(self, answer: Any, /, *, now: float) -> Iterable[Any]:
        found = self._read(answer)
        if found is None:
            return ()
        if isinstance(found, tuple | list) and all(isinstance(each, Quota) for each in found):
            return found
        stated = quotas(found, now=now)
        if isinstance(found, Mapping):
            self.fast_path.learn(found, stated)
        return stated

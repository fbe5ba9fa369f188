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
from .target import place_for, store_for
from .targets import TargetParts, TargetSettings, home_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..api.options import GuardOptions
    from ..core.policy import Policy
    from ..core.ports import Store
    from .target import Target
    from .targets import StoreTargets

__all__ = ("GuardTarget", "Observer", "sharing")


def sharing(target: str, policy: Policy, options: GuardOptions) -> GuardTarget | None:
    """What a guard of `target` shares; None if there is nothing.

    Raises:
        SettingError: An option is invalid.
    """
    scope: object = options.get("scope", "")
    if not isinstance(scope, str):
        raise SettingError(f"scope needs the name of an account; got {scope!r}")
    wants = _wants(target, policy, options)
    if wants == TargetSettings(None, None, None):
        return None
    waits = policy.when_open != "fail"
    if policy.when_open is None and "fallback" in options:
        waits = False  # there is an answer at once
    return GuardTarget(target, scope, options.get("store"), policy.store, wants, waits=waits)


def _wants(target: str, policy: Policy, options: GuardOptions) -> TargetSettings:
    breaker = policy.breakers.get(target, policy.breaker)
    wants = TargetSettings(
        breaker=_wanted("breaker", Breaker, options.get("breaker", True), breaker),
        gate=_wanted("gate", Gate, options.get("gate", True), policy.gate),
        tokens=_wanted("tokens", Tokens, options.get("tokens", True), policy.tokens),
    )
    if options.get("observe") is None or wants.gate is None:
        return wants
    # A guard that reads answers sends one call ahead, to learn the limits.
    return wants._replace(gate=replace(wants.gate, scout=True))


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
        wants: The guard's settings.
        waits: Whether its calls wait for a target that is down, and for retry tokens.
    """

    def __init__(
        self,
        target: str,
        scope: str,
        store: Store | str | None,
        otherwise: str,
        wants: TargetSettings,
        *,
        waits: bool = True,
    ) -> None:
        self.wants, self._waits = wants, waits
        self.observe_error = None if wants.gate is None else quotas_in_error
        self._names = target, scope
        self._store, self._otherwise = store, otherwise
        self.place: Target = place_for(target, scope, store, otherwise)

    def __call__(self, deadline_at: float) -> TargetCall:
        """The target's parts in the world around a call that ends by `deadline_at`."""
        parts = self._parts()
        # Guards that met before have agreed; in a test's world the first one's settings count.
        if parts.joined is not self.wants:
            parts.join(self.wants, is_strict=False)
        return TargetCall(parts, self.wants, waits=self._waits, deadline_at=deadline_at)

    def join(self) -> None:
        """Agree with the other guards of the target.

        Raises:
            SettingError: They want the same with other settings.
        """
        self._parts().join(self.wants)

    def adjust(self, **settings: Breaker | Gate | Tokens | None) -> None:
        """Change the settings of all guards of the target, from now on."""
        for name, value in settings.items():
            if value is not None:
                self._parts().adjust(name, value)

    def _parts(self) -> TargetParts:
        world = ambient_world.get() if self._store is None else None
        if (world is None or world.store is None) and self.place.parts is not None:
            return self.place.parts
        store = store_for(self._store, self._otherwise)
        home = home_of(store)
        place = home.place(*self._names)
        return place.parts or self._make_parts(place, home)

    @staticmethod
    def _make_parts(place: Target, home: StoreTargets) -> TargetParts:
        # Two guards of a target that fail at the same time must find the same parts.
        with home.lock:
            parts = place.parts
            if parts is None:
                parts = TargetParts(place, home)
                if place.has_default:
                    parts.join(_wants(place.target, preset("default"), {}))
                place.parts = parts
            return parts


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

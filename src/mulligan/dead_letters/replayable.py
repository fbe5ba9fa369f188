"""The decorator `replayable`: functions whose arguments may be stored in dead letters.

Arguments are the user's data, so they are stored only for functions with this decorator. Those that
are secrets are never stored; they are supplied at replay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature, unwrap
from typing import Any, TypeVar

from ..api.guard import Guard
from ..calls.callables import ASYNC_GENERATOR, GENERATOR, function_kind, name_of
from ..core.redaction import clean, mask
from ..errors import SettingError
from ..once.operation import check_parameters

__all__ = ("Replayable", "fit", "known", "rebuilt", "replayable", "replayable_of")

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__mulligan_replayable__"

# More than a call's arguments should be; a letter must not contain files.
_LARGEST = 256 * 1024

_known: dict[str, Replayable] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replayable:
    """A function whose calls can be made again.

    Args:
        name: What letters call it; it stays the same when the code moves.
        function: What a replay calls.
        secrets: Parameters that are never stored.
        supply: Returns the secrets by parameter, at replay.
        guard: What a replay goes through.
    """

    name: str
    function: Callable[..., Any]
    secrets: tuple[str, ...] = ()
    supply: Callable[[], Mapping[str, Any]] | None = None
    guard: Guard | None = None


def replayable(
    name: str,
    *,
    secrets: str | tuple[str, ...] = (),
    supply: Callable[[], Mapping[str, Any]] | None = None,
    guard: Guard | None = None,
) -> Callable[[F], F]:
    """Allow dead letters to store what a function was called with, so that it can be replayed.

    Put it above or below other decorators: a replay calls what it decorates.

    Args:
        name: What letters call the function. Keep it when the function moves or is renamed.
        secrets: Parameters that are never stored.
        supply: Called at replay for the secrets, by parameter.
        guard: What a replay goes through, where the function is not decorated by it: its policy,
            its gate, its breaker. By default the policy ``default``.

    Raises:
        SettingError: Another function has that name, or the secrets are none of its parameters.
    """
    if not name or clean(str(name), 100) != name:
        raise SettingError(
            f"replayable needs a short name for letters, such as 'deliver'; got {name!r}"
        )
    names = (secrets,) if isinstance(secrets, str) else tuple(secrets)

    def decorate(function: F) -> F:
        if function_kind(function) in (GENERATOR, ASYNC_GENERATOR):
            raise SettingError(f"{name_of(function)}() is a stream, and streams are not replayed")
        check_parameters(function, names, "secrets")
        made = Replayable(name=name, function=function, secrets=names, supply=supply, guard=guard)
        other = _known.get(name)
        if other is not None and _home(other.function) != _home(function):
            raise SettingError(
                f"two functions are replayable as {name!r}: {_home(other.function)} and "
                f"{_home(function)}; give one another name"
            )
        _known[name] = made
        # The guard calls what is inside the decorators, and must find it there, too.
        inner: Any = function
        while True:
            try:
                setattr(inner, _MARK, made)
            except AttributeError:
                raise SettingError(
                    f"{name_of(function)} takes no marks, so it cannot be made replayable; "
                    f"write a function around it"
                ) from None
            if not hasattr(inner, "__wrapped__"):
                return function
            inner = inner.__wrapped__

    return decorate


def known() -> Mapping[str, Replayable]:
    """Every replayable function of this process, by name."""
    return _known


def replayable_of(function: Any) -> Replayable | None:
    """How `function` can be replayed; None if it is not replayable."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Replayable) else None


def _home(function: Any) -> str:
    inner = unwrap(function)
    return f"{inner.__module__}.{getattr(inner, '__qualname__', name_of(inner))}"


def fit(
    made: Replayable, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """The arguments as a letter stores them, without secrets; else None, with the reason."""
    if hasattr(function, "__func__"):
        return None, "it was called as a method, and its object is not stored"
    try:
        shape = signature(function)
        given = shape.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None, "its arguments do not fit its signature"
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        kind = shape.parameters[name].kind
        if kind is Parameter.VAR_KEYWORD:
            arguments[name] = {k: each for k, each in value.items() if k not in made.secrets}
        elif name not in made.secrets:
            arguments[name] = list(value) if kind is Parameter.VAR_POSITIONAL else value
    size = 0
    for name, value in arguments.items():
        text = _as_json(value)
        if text is None:
            return None, f"its argument {name} is a {type(value).__name__}, which is not JSON"
        size += len(text)
        if size > _LARGEST:
            return None, f"its arguments are larger than {_LARGEST // 1024} kB"
        # The masker would change it, and a changed argument must not be sent.
        if mask(json.dumps({name: value})) != json.dumps({name: value}):
            return None, (
                f"its argument {name} looks like it holds a secret; if it does, name it in secrets="
            )
    return arguments, ""


def _as_json(value: Any) -> str | None:
    try:
        text = json.dumps(value, allow_nan=False)
        return text if json.loads(text) == value else None
    except Exception:  # noqa: BLE001 -- an argument's own methods may raise anything
        return None


def rebuilt(
    function: Callable[..., Any], arguments: Mapping[str, Any], secrets: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a letter as a call takes them.

    Raises:
        TypeError: The function no longer takes them.
    """
    shape = signature(function)
    bound = shape.bind_partial()
    given = {**arguments, **secrets}
    unknown = [name for name in given if name not in shape.parameters]
    extra = next(
        (name for name, each in shape.parameters.items() if each.kind is Parameter.VAR_KEYWORD), ""
    )
    if unknown and not extra:
        raise TypeError(f"it no longer takes {unknown[0]!r}")
    for name in shape.parameters:
        if name in given:
            bound.arguments[name] = given[name]
    if unknown:
        inside = {**bound.arguments.get(extra, {}), **{name: given[name] for name in unknown}}
        bound.arguments[extra] = inside
    shape.bind(*bound.args, **bound.kwargs)
    return bound.args, bound.kwargs

"""Which operation a call is: its function with its arguments, by name.

What is hidden from here cannot be told apart: a lambda or a closure brings values along that no
signature shows, a bound method an account. Where the arguments are all there is to go by, those
are refused, unless a scope says whose they are.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from ..core.canonical import canonical, digest
from ..errors import SettingError
from .engine import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("arguments_of", "check_parameters", "fingerprint_of", "key_of")


def arguments_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter, defaults included; those of partials, too.

    Raises:
        TypeError: The function does not take them; it would have said the same.
    """
    while isinstance(function, partial):
        args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
        function = function.func
    try:
        shape = signature(function)
    except ValueError:  # a builtin that does not say
        return {"args": args, **kwargs}
    bound = shape.bind(*args, **kwargs)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if shape.parameters[name].kind is Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[name] = value
    return found


def check_parameters(function: Callable[..., Any], names: Iterable[str], option: str) -> None:
    """Refuse names that `function` has no parameter for.

    Raises:
        SettingError: One of them is unknown.
    """
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            raise SettingError(
                f"{option} names {name!r}, which {name_of(function)}() does not take; "
                f"it takes {', '.join(parameters) or 'nothing'}"
            )


def fingerprint_of(
    function: Callable[..., Any], arguments: dict[str, Any], exclude: Iterable[str]
) -> str:
    """What a key is used for: the function's name, then a digest of what it was called with.

    An object that has no canonical form is known by its type: the key says which operation it is,
    and this only notices mistakes.
    """
    left_out = set(exclude)
    form = [
        [name, canonical(value, name=name, is_strict=False)]
        for name, value in sorted(arguments.items())
        if name not in left_out
    ]
    return f"{name_of(function).replace(':', '.')}:{digest([_home(function), form])}"


def key_of(  # noqa: PLR0917 -- all of it makes the key
    function: Callable[..., Any],
    arguments: dict[str, Any],
    parameters: tuple[str, ...],
    exclude: tuple[str, ...],
    scope: tuple[str, ...],
    target: str,
) -> str:
    """A key for this call: a hash of target, scope, function and arguments (E-F7, E-F8, R-I3).

    Args:
        function: What is called.
        arguments: Its arguments by parameter.
        parameters: Those that make the key; empty for all of them.
        exclude: Those that do not.
        scope: Whose operation it is: caller, run, step.
        target: The dependency.

    Raises:
        SettingError: The arguments do not say which operation it is.
    """
    if not parameters and not scope:
        _refuse_hidden(function)
    chosen = parameters or sorted(arguments.keys() - set(exclude))
    form = [[name, canonical(arguments.get(name), name=name)] for name in chosen]
    return digest(["key", target, *scope, _home(function), form])


def _refuse_hidden(function: Any) -> None:
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None)
    is_closure = code is not None and code.co_freevars and not hasattr(function, "__wrapped__")
    if is_closure or hasattr(function, "__func__") or name_of(function) == "<lambda>":
        what = "a method" if hasattr(function, "__func__") else "a closure or a lambda"
        raise SettingError(
            f"{name_of(function)} is {what}: it brings values along that are no arguments, so two "
            f"operations could look like one; say whose it is with scope=, or give it a key"
        )


def _home(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"

"""The operation of a call: its function and arguments, as the key's fingerprint sees them.

What is hidden from here cannot be told apart: a lambda or a closure brings values along that no
signature shows, a bound method an account. Where the arguments are all there is to go by, those
are refused, unless a scope says whose they are. The object of a method counts by its class alone:
its state is another one after every call, and in every process.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, signature, unwrap
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..calls.callables import name_of
from ..errors import SettingError
from .fingerprint import canonical, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("arguments_of", "check_object", "check_parameters", "fingerprint_of", "key_of")

# Usual names of the first parameter of a method.
_OBJECT, _CLASS = "self", "cls"


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
            # A parameter that takes no keyword leaves its name to others.
            found.update({f"**{key}" if key in found else key: value[key] for key in value})
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
        if name.partition(".")[0] not in parameters:
            raise SettingError(
                f"{option} names {name!r}, which {name_of(function)}() does not take; "
                f"it takes {', '.join(parameters) or 'nothing'}"
            )


def check_object(function: Callable[..., Any]) -> None:
    """Refuse a method whose arguments would be all there is to go by.

    Raises:
        SettingError: It is one: its object is not an argument, and may be an account.
    """
    try:
        first = next(iter(signature(function).parameters), "")
    except (TypeError, ValueError):
        return
    if first == _OBJECT and _is_method(function):
        raise SettingError(
            f"{name_of(function)} is a method, and two objects could look like one: name what "
            f"makes the key, once_per('order') or once_per('self.account', 'order'), or say whose "
            f"it is with scope="
        )


def _is_method(function: Any) -> bool:
    """Whether `function` is written in a class."""
    home = getattr(unwrap(function), "__qualname__", "").rpartition(".")[0]
    return bool(home) and not home.endswith("<locals>")


def _receiver(function: Any, arguments: dict[str, Any]) -> str:
    """The argument that is a method's object or class, or empty."""
    first = next(iter(arguments), "")
    return first if first in (_OBJECT, _CLASS) and _is_method(function) else ""


def _class_of(value: object) -> list[str]:
    kind = value if isinstance(value, type) else type(value)
    return ["class", f"{kind.__module__}.{kind.__qualname__}"]


def fingerprint_of(
    function: Callable[..., Any], arguments: dict[str, Any], exclude: Iterable[str]
) -> str:
    """What a key is used for: the function's name, then a digest of what it was called with.

    An object that has no canonical form is known by its type: the key says which operation it is,
    and this only notices mistakes.
    """
    left_out, receiver = set(exclude), _receiver(function, arguments)
    form = [
        [
            name,
            _class_of(value) if name == receiver else canonical(value, name=name, is_strict=False),
        ]
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

    `parameters` are those that make the key, or empty for all of them; with dots,
    ``self.account``, what an argument has. `exclude` are those that do not.

    Raises:
        SettingError: The arguments do not say which operation it is.
    """
    if not parameters and not scope:
        _refuse_hidden(function)
    receiver = _receiver(function, arguments)
    chosen = parameters or sorted(arguments.keys() - {*exclude, receiver})
    form = [
        [name, canonical(_part(function, arguments, name), name=name.partition(".")[0])]
        for name in chosen
    ]
    # A method that two classes have inherited is two.
    if receiver and receiver not in (*parameters, *exclude):
        form.append(_class_of(arguments[receiver]))
    elif hasattr(_inside(function), "__func__"):
        form.append(_class_of(_inside(function).__self__))
    return digest(["key", target, *scope, _home(function), form])


def _part(function: Any, arguments: dict[str, Any], name: str) -> Any:
    """The argument called `name`, or what of it."""
    first, *attributes = name.split(".")
    if first not in arguments:
        raise SettingError(
            f"{first!r} makes the key, and this call of {name_of(function)}() has none"
        )
    value = arguments[first]
    for attribute in attributes:
        try:
            value = getattr(value, attribute)
        except AttributeError:
            raise SettingError(
                f"{name!r} makes the key, and the {type(value).__name__} in this call of "
                f"{name_of(function)}() has no {attribute!r}"
            ) from None
    return value


def _inside(function: Any) -> Any:
    """What a partial calls in the end."""
    while isinstance(function, partial):
        function = function.func
    return function


def _refuse_hidden(function: Any) -> None:
    function = _inside(function)
    code, owner = getattr(function, "__code__", None), getattr(function, "__self__", None)
    is_closure = code is not None and code.co_freevars and not hasattr(function, "__wrapped__")
    what = ""
    if is_closure or name_of(function) == "<lambda>":
        what = "a closure or a lambda"
    elif owner is not None and not isinstance(owner, ModuleType | type):
        what = "a method"
    elif not hasattr(function, "__qualname__"):
        what = "an object"
    if what:
        raise SettingError(
            f"{name_of(function)} is {what}: it brings values along that are not arguments, so two "
            f"operations could look like one; say whose it is with scope=, or give it a key"
        )


def _home(function: Any) -> str:
    function = _inside(function)
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"

"""ToolDefinition: a function with a name, effects, and a JSON schema made from its signature.

Arguments come from a model: they are checked against the signature before anything is called, and
what is wrong with them is told field by field. Two calls are equal if the `identity` of their
arguments is.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from ..calls.callables import ASYNC, ASYNC_GENERATOR, GENERATOR, function_kind
from ..core.duration import seconds
from ..core.failure import Effects
from ..core.redaction import clean
from ..core.timeouts import Timeouts
from ..errors import SettingError
from ..once.fingerprint import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Unpack

    from ..core.duration import Duration

__all__ = ("BadArguments", "ToolDefinition", "ToolOptions", "identity", "jsonable")

# A retried timeout gets less time (R-B19).
_SHRINK = 0.8

_LONGEST_DESCRIPTION = 2000

# What Anthropic, OpenAI and MCP all take.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolOptions(TypedDict, total=False):
    """What a tool can be told, all of it optional.

    Keys:
        effects: What happens if it is called twice: ``read``, ``idempotent``, ``keyed`` (it sends
            ``mulligan.current().key`` along) or ``unsafe``, which is the default.
        target: The dependency that it calls; tools of one target share a breaker and limits.
            Default: its name.
        verify: How to find out whether a call was applied: a function of the tool's arguments, see
            `mulligan.retry`; or the name of the tool that the model should read with.
        timeout: Time for each attempt; a retried timeout gets 80 % of it.
        timeout_to: The parameter that a plain function takes its time limit by.
        key: The parameters that say which operation it is, ``("order_id",)``.
        fallback: The tool that is called while the target's circuit is open.
        name: What the model calls it. Default: the function's name.
        description: What the model is told about it. Default: the function's docstring.
    """

    effects: Effects | Literal["read", "idempotent", "keyed", "unsafe"]
    target: str | None
    verify: Callable[..., Any] | str | None
    timeout: Duration | None
    timeout_to: str | None
    key: tuple[str, ...] | str
    fallback: str
    name: str | None
    description: str | None


class BadArguments(Exception):
    """The arguments do not fit the tool; `fields` says for each field what is wrong with it."""

    def __init__(self, said: str, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(said)
        self.said, self.fields = said, fields


class ToolDefinition:
    """One tool of a toolbox.

    Args:
        function: What is called: plain or async.
        schema: The JSON schema of its arguments, where the signature does not have one.
        **options: See `ToolOptions`.

    Raises:
        SettingError: One of them is invalid.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        schema: dict[str, Any] | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        if not callable(function):
            raise SettingError(f"a tool needs a function; got {function!r}")
        self.function = function
        self.name = options.get("name") or str(getattr(function, "__name__", ""))
        if not _NAME.fullmatch(self.name):
            raise SettingError(
                f"a tool needs a name of 1 to 64 letters, digits, _ and -; got {self.name!r}; "
                f"set name="
            )
        if function_kind(function) in (GENERATOR, ASYNC_GENERATOR):
            raise SettingError(
                f"{self.name}() is a generator, and a tool has one result; return a list"
            )
        self.is_async = function_kind(function) == ASYNC
        self.effects = Effects.of(options.get("effects", Effects.UNSAFE))
        target = options.get("target")
        self.target = self.name if target is None else target
        about = options.get("description") or inspect.getdoc(function) or self.name
        self.description = clean(about, _LONGEST_DESCRIPTION)
        verify = options.get("verify")
        self.reads_with = verify if isinstance(verify, str) else ""
        self.verify = None if isinstance(verify, str) else verify
        timeout, self.timeout_to = options.get("timeout"), options.get("timeout_to")
        self.timeouts = None
        if timeout is not None:
            self.timeouts = Timeouts(total=seconds(timeout, name="timeout"), shrink=_SHRINK)
            if not self.is_async and self.timeout_to is None:
                raise SettingError(
                    f"{self.name}() is a plain function, which cannot be cut at "
                    f"timeout={timeout!r}: a thread left running and a retry would be two effects; "
                    f"make it async, or name the parameter that it takes its limit by: "
                    f"timeout_to='timeout'"
                )
        self.fallback, key = options.get("fallback", ""), options.get("key", ())
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self._adapter: Any = None
        self.schema: dict[str, Any] = schema if schema is not None else self._from_signature()
        if schema is None:
            self._check_names("key names", self.key)
            if self.schema.get("additionalProperties") is False:
                self._check_names("verify needs", _required(self.verify))

    def _check_names(self, what: str, names: Iterable[str]) -> None:
        known = self.schema["properties"]
        for each in names:
            if each not in known:
                raise SettingError(
                    f"{what} {each!r}, which {self.name}() does not take; "
                    f"it takes {', '.join(known) or 'nothing'}"
                )

    def _from_signature(self) -> dict[str, Any]:
        # pydantic builds the schema from a TypedDict: unlike a model, its fields may have any name.
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
        from typing_extensions import TypedDict as Table  # pydantic's, before Python 3.12

        fields: dict[str, Any] = {}
        takes_more = False
        try:
            hints = inspect.get_annotations(inspect.unwrap(self.function), eval_str=True)
        except (NameError, TypeError, SyntaxError) as trouble:
            raise SettingError(
                f"{self.name}() has an annotation that cannot be resolved here ({trouble}); "
                f"define its type at the top of the module"
            ) from trouble
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                takes_more = True
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise SettingError(
                    f"{self.name}() takes {parameter.name!r} by position, and a model names its "
                    f"arguments; make it a keyword parameter"
                )
            if parameter.name != self.timeout_to:
                kind = hints.get(parameter.name, Any)
                is_optional = parameter.default is not parameter.empty
                fields[parameter.name] = NotRequired[kind] if is_optional else kind
        make: Any = Table
        shape = make(self.name, fields)
        shape.__pydantic_config__ = {"extra": "allow" if takes_more else "forbid"}
        try:
            self._adapter = TypeAdapter(shape)
            schema = self._adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation) as trouble:
            raise SettingError(
                f"{self.name}() takes an argument that has no JSON schema ({trouble.message}); "
                f"take a type that JSON has, or pass schema="
            ) from trouble
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema  # type: ignore[no-any-return]

    def arguments(self, given: object) -> dict[str, Any]:
        """The arguments that a model wrote, checked.

        Args:
            given: A mapping, or JSON text.

        Raises:
            BadArguments: They do not fit.
        """
        found = _object(given)
        if self._adapter is None:
            return found
        from pydantic import ValidationError

        try:
            return dict(self._adapter.validate_python(found))
        except ValidationError as trouble:
            raise BadArguments("the arguments do not fit", self._wrong(trouble)) from None
        except Exception as trouble:  # a validator of the tool's own raised something else
            said = f"{type(trouble).__name__}: {trouble}"
            raise BadArguments(f"the arguments could not be checked: {said}") from trouble

    def _wrong(self, trouble: Any) -> tuple[tuple[str, str], ...]:
        known = ", ".join(self.schema["properties"]) or "no arguments"
        wrong = []
        for each in trouble.errors(include_url=False, include_context=False, include_input=False):
            name = ".".join(str(part) for part in each["loc"]) or "arguments"
            is_extra = each["type"] == "extra_forbidden"
            said = f"is unknown; {self.name} takes {known}" if is_extra else each["msg"]
            wrong.append((name, said))
        return tuple(wrong)

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that the function gets, those that were left out included."""
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.default is not parameter.empty and name != self.timeout_to
        }
        return {**defaults, **arguments}

    def operation(self, arguments: Mapping[str, Any]) -> list[Any]:
        """The values of the parameters that `key` names."""
        given = self.with_defaults(arguments)
        return [identity(given.get(each), name=each) for each in self.key]


def _required(verify: Callable[..., Any] | None) -> list[str]:
    """The parameters that `verify` cannot be called without."""
    if verify is None:
        return []
    return [
        each.name
        for each in inspect.signature(verify).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]


def _object(given: object) -> dict[str, Any]:
    """`given` as a table of arguments."""
    if given is None or given == "":
        return {}
    if isinstance(given, str | bytes | bytearray):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as trouble:
            raise BadArguments(f"the arguments are not JSON: {trouble}") from None
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given):
        kind = type(given).__name__
        raise BadArguments(f"the arguments need to be a JSON object; got a {kind}")
    return dict(given)


def identity(value: object, *, name: str) -> Any:
    """`value` as nested lists of strings that are equal if two values mean the same.

    What has no canonical form, such as a URL of pydantic or a very long list, is known by its JSON,
    and what has neither by its type.
    """
    try:
        return canonical(value, name=name)
    except SettingError:
        pass
    try:
        return ["json", json.dumps(jsonable(value), sort_keys=True)]
    except Exception:  # noqa: BLE001 -- whatever a foreign object raises when it is looked at
        return canonical(value, name=name, is_strict=False)


def jsonable(value: Any) -> Any:
    """`value` as JSON has it: models, dates, sets and bytes included.

    Raises:
        ValueError: It has no such form.
    """
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)

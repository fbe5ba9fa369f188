"""Validates the data of a file against a dataclass.

The dataclass is the schema: there is no second list of keys to keep in step. What is wrong leaves
here as a `FileError` about the key that stands first in the file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from .lines import line_of
from .problems import problems
from .suggestions import POLICY_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import TypeAdapter

    from .lines import KeyPath
    from .source import Source
    from .suggestions import FileKeys

__all__ = ("validated",)

T = TypeVar("T")


def validated(
    source: Source,
    adapter: TypeAdapter[T],
    data: Mapping[str, Any],
    *,
    at: KeyPath = (),
    words: FileKeys = POLICY_WORDS,
    written: Callable[[KeyPath], KeyPath] = lambda path: path,
) -> T:
    """What `data` says.

    Args:
        source: The file it comes from, for lines.
        adapter: The schema.
        data: What to check.
        at: Where in the file it stands.
        words: What the file calls its keys.
        written: A path as it stands in the file, where `data` has other words for it.

    Raises:
        FileError: It is invalid.
    """
    try:
        # Strict, and as JSON: no "4" for 4 and no true for 1, but lists for tuples and words
        # for enums, which strict Python input would refuse.
        return adapter.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        found = [
            ((*at, *written(path)), message, hint)
            for path, message, hint in problems(error, data, words)
        ]
    path, message, hint = min(
        found, key=lambda problem: line_of(source.text, problem[0]) or len(source.text)
    )
    raise source.error(message, path, hint=hint)

"""Worst-case cost of a regular expression: how many steps its backtracking could take.

``(a+)+$`` takes longer than anybody waits on forty characters, and while `re` is at it no signal is
heard. So the cost is estimated from the parsed pattern, before it ever meets a text. Each piece has
a number of ways in which it can match from one place, and a number of steps to try them all:

    a character      1 way, 1 step
    x y              ways multiply; y is tried once for each way of x
    x | y, x?        the larger number of ways; their sum inside of something that repeats, unless
                     the branches begin with different letters
    x{a,b}           one way for each number of times, times the ways of x that often
    x{a,b}+, (?>x), (?=x)    1 way, and the steps that it takes to find it

The estimate is generous: most searches end much sooner. What it rejects either takes exponential
time, or grows with the cube of the text's length.
"""

from __future__ import annotations

import re

# The parser that `re` itself uses has no public name since 3.11. The tests of the packs would
# notice if it changed.
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

__all__ = ("worst_case",)

_ENOUGH = 1e30


class _Cost(NamedTuple):
    ways: float
    steps: float


def worst_case(pattern: str, length: int) -> float:
    """How many steps a search of `pattern` in a text of `length` characters could take."""
    tree = parser.parse(pattern, re.IGNORECASE)
    return min(_ENOUGH, length * _sequence(tree, length, is_repeated=False).steps)


def _sequence(tree: Any, length: int, *, is_repeated: bool) -> _Cost:
    ways, steps = 1.0, 1.0
    for op, value in tree:
        piece = _piece(op, value, length, is_repeated=is_repeated)
        steps = min(_ENOUGH, steps + ways * piece.steps)
        ways = min(_ENOUGH, ways * piece.ways)
    return _Cost(ways, steps)


def _piece(op: Any, value: Any, length: int, *, is_repeated: bool) -> _Cost:
    def inner(tree: Any) -> _Cost:
        return _sequence(tree, length, is_repeated=is_repeated)

    match op:
        case c.MAX_REPEAT | c.MIN_REPEAT | c.POSSESSIVE_REPEAT:
            least, most, body = int(value[0]), min(int(value[1]), length), value[2]
            each = _sequence(body, length, is_repeated=is_repeated or most > 1)
            if op is c.POSSESSIVE_REPEAT:
                cost = _Cost(1.0, most * each.steps)
            elif most <= 1 and not is_repeated:
                cost = each
            else:
                cost = _repeated(each, least, most)
        case c.BRANCH:
            costs = [inner(branch) for branch in value[1]]
            is_one = not is_repeated or _begin_differently(value[1])
            ways = [each.ways for each in costs]
            cost = _Cost(max(ways) if is_one else sum(ways), sum(each.steps for each in costs))
        case c.SUBPATTERN:
            cost = inner(value[-1])
        case c.ASSERT | c.ASSERT_NOT:
            cost = _Cost(1.0, inner(value[1]).steps)
        case c.ATOMIC_GROUP:
            cost = _Cost(1.0, inner(value).steps)
        case c.GROUPREF_EXISTS:
            costs = [inner(part) for part in value[1:] if part is not None]
            cost = _Cost(1 + sum(each.ways for each in costs), sum(each.steps for each in costs))
        case _:
            cost = _Cost(1.0, 1.0)
    return cost


def _repeated(inner: _Cost, least: int, most: int) -> _Cost:
    if inner.ways <= 1:
        return _Cost(float(max(1, most - least + 1)), max(1.0, most * inner.steps))
    ways = steps = 0.0
    power = 1.0
    for times in range(most + 1):
        if times >= least:
            ways += power
        steps += power * inner.steps
        power *= inner.ways
        if steps >= _ENOUGH:
            return _Cost(_ENOUGH, _ENOUGH)
    return _Cost(max(1.0, ways), steps)


def _begin_differently(branches: list[Any]) -> bool:
    """Whether at most one of the branches can match at any place."""
    first = [branch[0] if len(branch) else None for branch in branches]
    letters = [chr(each[1]).lower() for each in first if each is not None and each[0] is c.LITERAL]
    return len(letters) == len(branches) and len(set(letters)) == len(letters)

"""Where a key stands, found without tomllib's help."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.lines import line_of, path_text

PLAN = '''
# a comment
title = "x"
long = """
[not.a.table]
title = 1
"""
list = [
    1,   # one
    [2, 3],
]

[defaults]
a.b.c = 1
policy = { rules = { server = { attempts = 3 } } }

[[phases]]
name = "first"

[[phases.agents]]
prompt = "p0"
[[phases.agents]]
prompt = "p1"

[[phases]]
name = "second"
[[phases.agents]]
prompt = "q0"
[phases.agents.env]
A = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 3),
        (("long",), 4),
        (("list",), 8),
        (("list", 1, 0), 8),
        (("defaults",), 13),
        (("defaults", "a", "b", "c"), 14),
        (("defaults", "policy", "rules", "server", "attempts"), 15),
        (("phases",), 17),
        (("phases", 0, "name"), 18),
        (("phases", 0, "agents", 0, "prompt"), 21),
        (("phases", 0, "agents", 1, "prompt"), 23),
        (("phases", 1), 25),
        (("phases", 1, "agents", 0, "prompt"), 28),
        (("phases", 1, "agents", 0, "env", "A"), 30),
        (("phases", 1, "agents", 0, "missing"), 27),
        (("nowhere",), None),
    ],
)
def test_a_key_is_found_where_it_stands(path, line):
    assert line_of(PLAN, path) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("phases", 1, "agents", 0, "prompt"), "phases[1].agents[0].prompt"),
        (("rules", "rate_limit"), "rules.rate_limit"),
        (("a.b", "", "c"), "'a.b'.''.c"),
        (("\x1b[2J",), r"'\x1b[2J'"),
        ((), ""),
    ],
)
def test_paths_read_as_people_write_them(path, text):
    assert path_text(path) == text


_NAMES = st.text("abc", min_size=1, max_size=3)
_VALUES = st.sampled_from(["1", '"x"', "[\n 1,\n 2,\n]", '"""\n[a]\nb = 1\n"""', "{ a = 1 }"])


@given(
    tables=st.lists(
        st.tuples(_NAMES, st.dictionaries(_NAMES, _VALUES, max_size=4)),
        max_size=5,
        unique_by=lambda table: table[0],
    ),
    gaps=st.integers(0, 2),
)
def test_every_key_of_every_document_is_found_on_its_line(tables, gaps):
    text, places = "", {}
    for table, keys in tables:
        text += "\n" * gaps + f"[{table}]\n"
        for key, value in keys.items():
            places[(table, key)] = text.count("\n") + 1
            text += f"{key} = {value}\n"
    tomllib.loads(text)
    assert {path: line_of(text, path) for path in places} == places


def test_a_long_file_is_searched_once_not_once_a_line():
    text = "".join(f"[t{n}]\nkey = {n}\n" for n in range(5_000))
    assert line_of(text, ("t4999", "key")) == 10_000

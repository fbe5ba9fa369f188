from __future__ import annotations

import re

import pytest

from mulligan.errors import FileError
from mulligan.faults.file import FaultSettings, read_toml

WHOLE = """
seed = 7
text = "hello"
script = "503:0.1, ok"
resources = ["invoices", "payments"]
honours_keys = false

[[rules]]
path = "/v1/messages"
client = "team-a"
steps = "429(retry-after=2)x2, ok"

[[rules]]
method = "post"
steps = "lost, ok"

[limits]
requests = "50/60s"
tokens = "40000/1m"
counting = "sliding"
counts_refusals = true
"""


def test_a_file_says_what_a_line_can_and_more():
    found = read_toml(WHOLE, file="x.toml")
    assert str(found.script) == (
        "/v1/messages @team-a -> 429(retry-after=2)x2,ok; POST -> lostx1,ok; 503:0.1,ok"
    )
    assert (found.seed, found.text, found.honours_keys) == (7, "hello", False)
    assert found.resources == ("invoices", "payments")
    assert found.limits is not None
    assert found.limits.requests is not None
    assert found.limits.requests.window == 60
    assert found.limits.counts_refusals


def test_an_empty_file_says_nothing():
    assert read_toml("", file="x.toml") == FaultSettings()
    assert FaultSettings().script is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scrpt = 'ok'", "x.toml: scrpt: no such key; did you mean script?"),
        ("seed = true", "x.toml: seed: needs a number; got True"),
        ("script = 'stal'", "x.toml: script: no fault is called 'stal'; did you mean stall?"),
        ("[[rules]]\npath = '/x'", 'x.toml: rules[0]: a rule needs steps; steps = "429x2, ok"'),
        (
            "[limits]\nrequests = '5'",
            "x.toml: limits: a limit of requests is written like 50/60s; got '5'",
        ),
        (
            "resources = ['a/b']",
            "x.toml: resources: a resource is named like invoices; got 'a/b'",
        ),
        ("rules = [1]", "x.toml: rules[0]: needs a table; got 1"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(text, message):
    with pytest.raises(FileError, match=f"^{re.escape(message)}$"):
        read_toml(text, file="x.toml")


def test_what_is_not_toml_says_so():
    with pytest.raises(FileError, match=r"^x\.toml: not TOML: "):
        read_toml("= 3", file="x.toml")

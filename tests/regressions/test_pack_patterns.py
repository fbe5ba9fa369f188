"""A user's pattern could hang a run for ten minutes, deaf to SIGTERM.

`mulligan packs check` passed ``error: (a+)+$``: its hostile texts did not begin with ``error: ``. A
run then read ``error: aaaa…!`` and never came back; Python's `re` holds the interpreter while it
backtracks. Patterns that could take that long are refused when a pack is loaded.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan.api.agent_output import load_packs
from mulligan.classify.pattern_cost import worst_case
from mulligan.classify.pattern_packs import TEXT_LENGTH, PackError, check_cost, pack_from
from mulligan.cli import main
from mulligan.config.packs import find_packs

PACK = """\
version = 1
[[entry]]
id = "boom"
match = '{}'
kind = "quota"
seen = "a test"
"""

EXPONENTIAL = [
    r"error: (a+)+$",
    r"(?:a|a)*b",
    r"(\w+\s?)+:",
    r"(?:a|ab|b)*c",
    r"(?:x?y?)*z",
    r"(?:[a-z]+\d*){5,}!",
]
CUBIC = [r"a.*b.*c", r"\s+.*\s+x", r"\d+/\d+ in"]
FINE = [
    r"quota .* exceeded",
    r"a.{0,80}b.{0,80}c",
    r"(?:foo|bar)+x",
    r"(?:[\w-]{1,20}+ ){0,5}limit",
    r"(?>a{1,40})b",
    r"limit(?= reached| exceeded).{0,60}",
]


@pytest.mark.parametrize("pattern", [*EXPONENTIAL, *CUBIC])
def test_a_pattern_that_could_hang_is_refused_when_its_pack_is_loaded(pattern):
    entry = {"id": "boom", "match": pattern, "kind": "quota", "seen": "a test"}
    with pytest.raises(PackError, match=r"^entry\[0\] boom: match could take minutes on 4000"):
        pack_from({"version": 1, "entry": [entry]}, name="acme")


@pytest.mark.parametrize("pattern", FINE)
def test_what_people_write_is_admitted(pattern):
    check_cost(pattern, "")


def test_every_built_in_pattern_passes_the_same_check():
    for pack in load_packs(find_packs(environ={})).packs.packs:
        for entry in pack.entries:
            check_cost(entry.match.pattern, f"{pack.name} {entry.id}")


def test_packs_check_names_the_entry_and_the_way_out(tmp_path, capsys):
    file = tmp_path / "acme.toml"
    file.write_text(PACK.format("error: (a+)+$"))
    with pytest.raises(SystemExit) as ended:
        main(["packs", "check", str(file)])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "acme.toml" in said
    assert "entry[0] boom: match could take minutes" in said
    assert ".{0,80} for .*" in said


pieces = st.recursive(
    st.sampled_from(["a", "b", "[ab]", r"\w", "."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        inner.map(lambda one: f"(?:{one})*"),
        inner.map(lambda one: f"(?:{one})+?"),
        inner.map(lambda one: f"(?:{one}){{0,3}}"),
        inner.map(lambda one: f"(?:{one})?"),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(pieces, st.sampled_from(["a", "ab", "ba ", "b"]))
def test_what_is_cheap_by_the_estimate_ends_soon(pattern, seed):
    """On short texts the estimate is a bound that can be afforded, so it is tried."""
    import re

    text = (seed * 12)[:24] + "!"
    if worst_case(f"{pattern}$", len(text)) > 1e6:
        return
    began = time.thread_time()
    re.search(f"{pattern}$", text)
    # A million steps take a hundredth of a second; what hangs takes hours.
    assert time.thread_time() - began < 5


def test_the_estimate_grows_with_the_text():
    assert worst_case("a.*b", TEXT_LENGTH) > 100 * worst_case("a.*b", TEXT_LENGTH // 40)

from __future__ import annotations

import re

import pytest

from mulligan.api.agent_output import load_packs
from mulligan.classify.pattern_packs import Meaning, PackError, Voice, pack_from
from mulligan.cli.commands.packs import LIMIT_SECONDS, slowest
from mulligan.config.packs import find_packs
from mulligan.core.failure import Kind

ENTRY = {"id": "x", "match": "too busy", "kind": "overloaded", "seen": "Acme 1.0"}
BUILTIN = load_packs(find_packs(environ={})).packs.packs


def test_a_pack_is_read_from_a_table():
    table = {"version": 2, "agents": ["acme"], "entry": [{**ENTRY, "voice": "error"}]}
    pack = pack_from(table, name="acme", file="acme.toml")
    assert (pack.name, pack.version, pack.agents) == ("acme", 2, ("acme",))
    assert pack.entries[0].means is Kind.OVERLOADED
    assert pack.entries[0].voice is Voice.ERROR


def test_a_list_of_patterns_means_any_of_them():
    table = {"version": 1, "entry": [{**ENTRY, "match": ["too busy|napping", "asleep"]}]}
    (entry,) = pack_from(table, name="acme").entries
    assert all(entry.match.match(words) for words in ("too busy", "napping", "asleep"))
    assert entry.match.match("awake") is None


def test_a_part_is_written_once_and_used_by_name():
    table = {
        "version": 1,
        "parts": {"who": "server|model", "busy": "{who} is (?:too )?busy"},
        "entry": [{**ENTRY, "match": "(?:the )?{busy}{1,2}"}],
    }
    (entry,) = pack_from(table, name="acme").entries
    assert all(entry.match.match(words) for words in ("server is busy", "the model is too busy"))
    assert entry.match.match("server") is None


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"a": "{b}", "b": "x"}, r"parts\.a: there is no part \{b\}; the pack has no \[parts\]"),
        ({"a": "x", "b": "{c}"}, r"parts\.b: there is no part \{c\}; known: a"),
        ({"a": "("}, r"parts\.a: it is not a regular expression: .+"),
        ({"a": 5}, r"parts\.a: needs text; got 5"),
        ({"A1": "x"}, r"parts\.A1: a part's name has small letters and underscores only"),
        (["x"], r"parts needs a table of pieces of patterns; got \['x'\]"),
        (
            {"a": "x" * 9000, "b": "{a}{a}{a}"},
            r"parts\.b: with its parts it has \d+ characters; .+",
        ),
    ],
)
def test_a_bad_part_is_named(parts, message):
    with pytest.raises(PackError, match=f"^{message}$"):
        pack_from({"version": 1, "parts": parts, "entry": [ENTRY]}, name="acme")


def test_an_entry_with_an_unknown_part_is_named():
    table = {"version": 1, "parts": {"a": "x"}, "entry": [{**ENTRY, "match": "{aa}"}]}
    with pytest.raises(PackError, match=r"^entry\[0\] x: there is no part \{aa\}; known: a$"):
        pack_from(table, name="acme")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"match": "("}, r"entry\[0\] x: match is not a regular expression: .+"),
        ({"match": "a*"}, r"entry\[0\] x: match fits an empty line, so it would match everything"),
        ({"match": ""}, r"entry\[0\] x: match is missing"),
        ({"kind": "rate"}, r"entry\[0\] x: kind needs one of rate_limit, .+; got 'rate'"),
        ({"seen": ""}, r"entry\[0\] x: seen is missing"),
        ({"voice": "loud"}, r"entry\[0\] x: voice needs one of line, .+; got 'loud'"),
        (
            {"zone": "Mars"},
            r"entry\[0\] x: zone needs an IANA name such as Asia/Shanghai; got 'Mars'",
        ),
        ({"kin": "x"}, r"entry\[0\] x: unknown key 'kin'; known: id, match, .+"),
        ({"match": 5}, r"entry\[0\] x: match needs text; got 5"),
        ({"match": "a" * 3000}, r"entry\[0\] x: match has 3000 characters; at most \d+, split it"),
    ],
)
def test_a_bad_entry_is_named(change, message):
    with pytest.raises(PackError, match=f"^{message}$"):
        pack_from({"version": 1, "entry": [{**ENTRY, **change}]}, name="acme")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"entry": [ENTRY]}, "version needs a whole number from 1; got None"),
        ({"version": 1}, r"a pack needs at least one \[\[entry\]\]"),
        (
            {"version": 1, "entry": [ENTRY, ENTRY]},
            "two entries are called 'x'; give each its own id",
        ),
        ({"version": 1, "entry": [7]}, r"entry\[0\]: needs a table; got 7"),
        ({"version": 1, "agents": "a", "entry": [ENTRY]}, "agents needs a list of names; got 'a'"),
        (
            {"version": 1, "name": "a", "entry": [ENTRY]},
            "unknown key 'name'; a pack has version, .+",
        ),
    ],
)
def test_a_bad_pack_says_what_to_do(table, message):
    with pytest.raises(PackError, match=f"^{message}$"):
        pack_from(table, name="acme")


def test_the_packs_of_an_agent_are_asked_first():
    packs = load_packs(find_packs(environ={})).packs
    assert packs.entries("codex")[0][0].name == "codex"
    assert packs.entries("codex-cli")[0][0].name == "codex"
    assert packs.entries("")[-1][0].name == "generic"
    assert len(packs.entries("codex")) == len(packs.entries(""))


@pytest.mark.parametrize("pack", BUILTIN, ids=lambda pack: pack.name)
def test_every_built_in_pattern_is_fast_on_hostile_text(pack):
    """The limit leaves room for a busy machine; `mulligan packs check` uses the strict one."""
    for entry in pack.entries:
        seconds, length = slowest(entry.match)
        assert seconds < 4 * LIMIT_SECONDS, f"{entry.id}: {seconds:.3f} s on {length} characters"


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:a|a)*b", r"(\w+\s?)+:"])
def test_catastrophic_patterns_are_caught_before_they_hang(pattern):
    seconds, length = slowest(re.compile(pattern))
    assert seconds > LIMIT_SECONDS
    assert length < 4000


def test_limits_are_never_taken_from_anywhere_in_a_line():
    """Prose may contain any word; only notices and final errors may use the widest voice."""
    harmless = {*Meaning, Kind.RATE_LIMIT, Kind.AUTH}
    for pack in BUILTIN:
        for entry in pack.entries:
            if entry.voice is Voice.ANYWHERE:
                assert entry.means in harmless, f"{pack.name}: {entry.id}"

from __future__ import annotations

import os
from datetime import UTC

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs

GOOD = (
    'version = 1\n[[entry]]\nid = "busy"\nmatch = "acme is busy"\n'
    'kind = "overloaded"\nseen = "Acme 1"\n'
)


def test_the_built_in_packs_load_without_a_problem(tmp_path):
    found = find_packs(environ={}, folder=tmp_path)
    assert found.problems == ()
    assert [table.name for table in found.tables][-2:] == ["apis", "generic"]
    assert load_packs(found).problems == ()


def test_a_users_pack_is_asked_first_and_adds_to_the_built_in_one(tmp_path):
    (tmp_path / "claude.toml").write_text(GOOD, encoding="utf-8")
    packs = load_packs(find_packs(environ={}, folder=tmp_path)).packs
    assert [pack.name for pack in packs.packs].count("claude") == 2
    assert packs.packs[0].entries[0].id == "busy"


def test_the_environment_names_files_and_folders(tmp_path):
    one, folder = tmp_path / "one.toml", tmp_path / "more"
    folder.mkdir()
    one.write_text(GOOD, encoding="utf-8")
    (folder / "two.toml").write_text(GOOD, encoding="utf-8")
    named = os.pathsep.join([str(one), str(folder)])
    found = find_packs(environ={"MULLIGAN_PACKS": named}, folder=tmp_path / "none")
    assert [table.name for table in found.tables if not table.is_builtin] == ["one", "two"]


def test_a_bad_pack_names_its_file_and_entry_and_the_others_still_load(tmp_path):
    bad, broken, good = (tmp_path / name for name in ("a.toml", "b.toml", "c.toml"))
    bad.write_text(GOOD.replace("overloaded", "busy"), encoding="utf-8")
    broken.write_text("version = ", encoding="utf-8")
    good.write_text(GOOD, encoding="utf-8")
    loaded = load_packs(find_packs(environ={}, folder=tmp_path))
    words = [str(problem) for problem in loaded.problems]
    assert words[0].startswith(f"{broken}: is not TOML: ")
    assert words[1].startswith(f"{bad}: entry[0] busy: kind needs one of ")
    assert len(words) == 2
    outcome = read_output("acme is busy", packs=loaded.packs, now=0.0, zone=UTC)
    assert outcome.because == "c: busy"


def test_a_path_that_does_not_exist_is_a_problem_with_a_hint(tmp_path):
    missing = tmp_path / "no.toml"
    found = find_packs(environ={"MULLIGAN_PACKS": str(missing)}, folder=tmp_path)
    assert str(found.problems[0]).startswith(
        f"{missing}: no such file or folder; MULLIGAN_PACKS takes"
    )


def test_bytes_that_are_not_text_and_files_that_are_too_large_are_problems(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xff")
    (tmp_path / "b.toml").write_bytes(b"#" * 1_100_000)
    words = [str(problem) for problem in find_packs(environ={}, folder=tmp_path).problems]
    assert "needs UTF-8; byte 0 is not" in words[0]
    assert "a pack has at most 1048576 bytes; got 1100000" in words[1]

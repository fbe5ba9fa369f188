"""docs/agents-words.md says what the code does."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

from mulligan.classify.pattern_packs import Meaning, Voice, pack_from

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "agents-words.md").read_text(encoding="utf-8")


def test_every_python_snippet_runs():
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    exec(compile(code, "docs/agents-words.md", "exec"), {})  # noqa: S102 -- our own page


def test_the_packs_on_the_page_are_good_ones():
    first, second = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    pack = pack_from(tomllib.loads(first), name="acme")
    assert [entry.id for entry in pack.entries] == ["daily-limit", "napping"]
    (entry,) = pack_from({"version": 1, **tomllib.loads(second)}, name="acme").entries
    assert entry.match.match("your weekly allowance is used up")


def test_the_page_names_every_key_voice_and_meaning_of_an_entry():
    words = set(re.findall(r"`(\w+)`", PAGE))
    keys = {"id", "match", "kind", "with_reset", "voice", "zone", "seen"}
    assert (keys | set(Voice) | set(Meaning)) <= words


def test_the_example_runs(capsys):
    runpy.run_path(str(ROOT / "examples" / "classify_output.py"), run_name="__main__")
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == ("a plan's limit       quota, resets in 3d5h (claude: hit-your-limit)")
    assert [" no failure " in row for row in rows] == [False, False, False, True, True]

"""docs/git.md says what the code says."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from mulligan.run import git
from mulligan.run.git import baseline, commits, locks
from mulligan.run.git.commits import PREFIX

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "git.md").read_text(encoding="utf-8")
SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "src/mulligan/run/git").glob("*.py")
)


def column(head: str) -> list[str]:
    """The first cells of the table whose head begins like this."""
    _, _, rest = PAGE.partition(f"\n| {head}")
    rows = rest.partition("\n\n")[0].splitlines()[2:]
    return [row.split("|")[1].strip().strip("`") for row in rows]


def test_every_mode_has_its_row():
    assert set(column("mode |")) == set(get_args(git.Mode))


def test_every_state_has_its_row():
    assert set(column("state |")) == set(get_args(git.State))


def test_every_reason_for_leaving_a_file_is_one_that_is_given():
    reasons = column("left, because")
    assert len(reasons) == 6
    for reason in reasons:
        *_, last = reason.split(": ")
        assert f'"{reason}"' in SOURCE or last in SOURCE


def test_the_defaults_are_the_defaults():
    for words in (
        f"| prefix of a commit | `{PREFIX}` |",
        f"in `commit` only, {commits.HOOK_SECONDS:g} s",
        f"{baseline.MOST_BYTES >> 30} GB in all",
        f"watched for {locks._OLD:g} s, then moved away",
    ):
        assert words in PAGE


def test_the_patterns_named_on_the_page_are_in_the_list():
    for name in (".env", "id_rsa", "server.pem"):
        assert git.why_secret(name)
        assert f"`{name}" in PAGE or f"*{name[-4:]}" in PAGE

"""Files of agents: one each, and never written through a link."""

from __future__ import annotations

import os

import pytest

from mulligan.errors import SettingError
from mulligan.run.plan.artifacts import output_path, write_output
from mulligan.run.plan.model import Agent, Phase, Plan
from mulligan.run.plan.validate import problems


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "link").symlink_to("sub")
    (tmp_path / "answer").write_text("payload")
    return tmp_path / "work"


def found(folder, *agents):
    plan = Plan(phases=(Phase(name="a", agents=agents),))
    return [each.message for each in problems(plan, folder=folder)]


def agent(name, output, cwd=""):
    return Agent(name=name, command=("true",), output=output, cwd=cwd)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (agent("x", "../out.md", "sub"), agent("y", "out.md")),
        (agent("x", "link/l.md"), agent("y", "sub/l.md")),
        (agent("x", "l.md", "link"), agent("y", "sub/./l.md")),
    ],
)
def test_two_spellings_of_one_file_are_one_file(folder, first, second):
    assert found(folder, first, second) == [f"{second.output!r} is the file of a/x as well"]


def test_an_absolute_path_can_be_the_file_of_another_as_well(folder):
    second = agent("y", str(folder / "sub" / "l.md"))
    assert found(folder, agent("x", "link/l.md"), second)


def test_one_name_in_two_folders_is_two_files(folder):
    assert found(folder, agent("x", "out.md", "sub"), agent("y", "out.md")) == []


def test_a_file_inside_the_file_of_another_is_refused(folder):
    assert found(folder, agent("x", "out"), agent("y", "out/y.md")) == [
        "'out/y.md' and the file of a/x lie one inside the other"
    ]


@pytest.mark.parametrize("output", ["sub", "sub/", ".", "..", "sub/.."])
def test_a_folder_is_no_output(folder, output):
    assert len(found(folder, agent("x", output))) == 1


def test_a_link_of_the_agents_making_is_replaced_not_followed(folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (folder / "out.md").symlink_to(precious)
    write_output(tmp_path / "answer", folder, "out.md")
    assert (precious.read_text(), (folder / "out.md").read_text()) == ("mine", "payload")
    assert not (folder / "out.md").is_symlink()


def test_a_folder_that_became_a_link_leads_nowhere(folder, tmp_path):
    (tmp_path / "home").mkdir()
    (folder / "reports").symlink_to(tmp_path / "home")
    with pytest.raises(
        SettingError, match=r"^output 'reports/x' leads out of its folder by a link"
    ):
        write_output(tmp_path / "answer", folder, "reports/x")
    assert not list((tmp_path / "home").iterdir())


def test_a_path_that_leads_out_in_so_many_words_is_meant(folder, tmp_path):
    assert output_path(folder, "../x.md") == tmp_path / "x.md"
    assert output_path(folder, str(tmp_path / "x.md")) == tmp_path / "x.md"


def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual(folder, tmp_path):
    (folder / "out.md").write_text("old")
    (folder / "out.md").chmod(0o640)
    write_output(tmp_path / "answer", folder, "out.md")
    write_output(tmp_path / "answer", folder, "deep/er/new.md")
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "out.md").stat().st_mode & 0o777 == 0o640
    assert (folder / "deep" / "er" / "new.md").stat().st_mode & 0o777 == 0o666 & ~mask
    assert sorted(each.name for each in folder.iterdir()) == ["deep", "link", "out.md", "sub"]


def test_what_cannot_be_written_is_said_and_leaves_nothing_behind(folder, tmp_path):
    (folder / "file").write_text("")
    with pytest.raises(SettingError, match=r"^output 'file/x' cannot be written: file exists$"):
        write_output(tmp_path / "answer", folder, "file/x")


def test_no_name_has_a_dot_because_dots_divide_the_ids_of_runs(folder):
    with pytest.raises(SettingError, match=r"^an agent needs a name of at most 40 letters, digits"):
        Agent(name="b.c", command=("true",))
    with pytest.raises(SettingError, match=r"^a phase needs a name of at most 40 letters, digits"):
        Phase(name="a.b", agents=(agent("c", ""),))
    assert Agent(command=("./check.sh", "all")).name == "check-sh"


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(SettingError, match=r"is a device or a pipe; name a file$"):
            output_path(tmp_path, name)

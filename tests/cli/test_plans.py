"""`mulligan run PLAN.toml`: shown before it runs, and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.cli import main
from mulligan.run.journal.entries import RunMade
from mulligan.run.journal.store import RunStore

EXAMPLES = Path(__file__).parents[2] / "examples" / "plans"
PLAN = """
name = "greet"
concurrency = 2
providers = { shell = 1 }
cost_limit = 2.5
variables = { who = "you" }
env = { CI = "3" }

[[phases]]
name = "ask"
on_failure = "require_minimum"
minimum = 1
concurrency = 2
agents = [
  { name = "one", command = ["sh", "-c", "echo good; touch ran"], provider = "shell" },
  { name = "two", command = ["sh", "-c", "exit 3"] },
]

[[phases]]
name = "tell"
policy = "pipeline"
git = "worktree"
verify = ["true"]

[[phases.agents]]
command = ["cat"]
prompt = "Tell {{who}}:\\n{{outputs.ask}}"
input = "stdin"
output = "told.txt"
timeout = "5m"
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for line in (["init", "-q"], [*who, "commit", "-qm", "first", "--allow-empty"]):
        subprocess.run(["git", *line], check=True)  # noqa: S607 -- the one on the PATH

    def run(*args: str, plan: str = PLAN) -> tuple[int, str, str]:
        (tmp_path / "greet.toml").write_text(plan)
        with pytest.raises(SystemExit) as done:
            main(["run", *args])
        said = capsys.readouterr()
        return int(str(done.value.code)), said.out, said.err

    return run


def test_a_dry_run_shows_what_would_run_and_runs_nothing(run, tmp_path):
    code, out, err = run("--dry-run", "greet.toml")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
plan       greet, from greet.toml
agents     3 in 2 phases
at once    2 agents, 1 of shell at most
cost       nothing more is started after $2.50
env        CI

phase      ask
  agents   2, side by side, 2 at once at most
  fails    as soon as 1 successes cannot be reached
  policy   pipeline: 4 attempts; waits 6h at most
  agent    one
    runs     sh -c 'echo good; touch ran'
    provider shell
  agent    two
    runs     sh -c 'exit 3'

phase      tell
  after    ask
  agents   1
  fails    if its agent does
  policy   pipeline: 4 attempts; waits 6h at most
  git      worktree, merged into the tree
  verify   true, 10m at most
  agent    cat
    runs     cat
    stdin    Tell you:
             ## one

             [what ask/one prints]

             ## two

             [what ask/two prints]
    output   told.txt
    timeout  5m
"""
    )
    assert {path.name for path in tmp_path.iterdir()} == {".git", "greet.toml"}


def test_a_dry_run_for_programs_has_every_setting(run):
    _, out, _ = run("--dry-run", "--json", "greet.toml")
    data = json.loads(out)
    assert (data["plan"], data["concurrency"], data["env"]) == ("greet", 2, ["CI"])
    ask, tell = data["phases"]
    assert ask["agents"][0]["argv"] == ["sh", "-c", "echo good; touch ran"]
    assert (tell["needs"], tell["git"], tell["policy"]["name"]) == (["ask"], "worktree", "pipeline")
    assert tell["longest_wait"] == 21_600
    assert tell["agents"][0]["stdin"].startswith("Tell you:\n## one\n")


def test_a_plan_that_cannot_be_started_here_is_wrong_usage(run, tmp_path):
    plan = PLAN.replace('"cat"', '"no-such-program"')
    code, out, err = run("greet.toml", plan=plan)
    assert (code, out) == (2, "")
    assert err == (
        "error: phases[1].agents[0].command: there is no no-such-program on the PATH here; "
        "install it, or write its path\n\n"
        "hint: nothing was started; mulligan lint shows all that is in its way\n"
    )
    assert not (tmp_path / "ran").exists()


BOUNDS = {
    'policy = "default"': "default: 8 attempts, limits as time allows; waits 6h at most",
    'policy = { horizon = "10m" }': "a: 4 attempts; waits 10m at most",
    'policy = { deadline = "1h" }': "a: 4 attempts; ends after 1h, waits included",
    'policy = { deadline = "9h" }': "a: 4 attempts; waits 6h at most; ends after 9h",
    'policy = { budget = "20m" }': "a: 4 attempts; waits 20m at most, by its budget",
    'policy = { patience = "20m" }': "a: 4 attempts; waits 20m at most, by its patience",
    "policy = { attempts = 1 }": "a: 1 attempt; never waits",
}


@pytest.mark.parametrize(("policy", "words"), BOUNDS.items())
def test_a_dry_run_says_how_long_an_agent_would_wait(run, policy, words):
    plan = f'[[phases]]\nname = "a"\n{policy}\nagents = [{{ command = ["true"] }}]\n'
    assert f"  policy   {words}\n" in run("--dry-run", "greet.toml", plan=plan)[1]


TIMES = {
    "": "",
    "timeouts.total = 600": "    timeout  10m, by its policy\n",
    "timeouts.total = 600\ndeadline = 60": "    timeout  1m, by its deadline\n",
}


@pytest.mark.parametrize(("policy", "words"), TIMES.items())
def test_a_dry_run_says_how_long_an_attempt_may_take(run, policy, words):
    plan = f'[[phases]]\nname = "a"\nagents = [{{ command = ["true"] }}]\n[phases.policy]\n{policy}'
    assert run("--dry-run", "greet.toml", plan=plan)[1].endswith(f"    runs     true\n{words}")


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.name)
def test_every_example_can_be_shown(run, file):
    code, out, _ = run("--dry-run", str(file))
    assert (code, out.startswith("plan ")) == (0, True)


def test_no_secret_in_a_plan_is_shown(run):
    secret = "sk-planted-0123456789abcdefghij"
    plan = PLAN.replace('"you"', f'"key {secret}"').replace("echo good", f"echo {secret}")
    for option in ((), ("--json",)):
        _, out, err = run("--dry-run", *option, "greet.toml", plan=plan)
        assert secret not in out + err


def test_surprises_are_shown_beside_it(run):
    _, _, err = run(
        "--dry-run",
        "greet.toml",
        plan=PLAN.replace("minimum = 1\nconcurrency = 2", "minimum = 1\nconcurrency = 9"),
    )
    assert err == (
        "warning: phases[0].concurrency: 2 run at once at most, as many as there are; write 2 or "
        "less\n"
    )


REFUSED = {
    ("greet.toml", "--dry-run"): (
        "error: a plan takes no arguments; got --dry-run\n\n"
        "hint: options stand before the file: mulligan run --dry-run greet.toml\n"
    ),
    ("--attempts", "3", "greet.toml"): (
        "error: --attempts is for a bare command\n\n"
        "hint: in a plan it belongs in a phase's policy, as attempts\n"
    ),
    ("--name", "a\nb", "greet.toml"): (
        "error: --name needs a line of text; 'a\\nb' has control characters\n\n"
        "hint: write it without them\n"
    ),
    ("--notify", "'", "greet.toml"): (
        "error: --notify cannot be split: no closing quotation\n\nhint: close its quotes\n"
    ),
    ("--policy", "nothing", "greet.toml"): (
        "error: --policy is for a bare command\n\n"
        "hint: in a plan it belongs in a phase, as policy\n"
    ),
    ("--own-retries", "0", "greet.toml"): (
        "error: --own-retries is for a bare command\n\n"
        "hint: in a plan it belongs in an agent's args or env\n"
    ),
    ("--dry-run", "--", "ls"): (
        "error: --dry-run is for plans\n\nhint: write mulligan run --dry-run PLAN.toml\n"
    ),
    ("--report", "x.md", "--", "ls"): (
        "error: --report is for plans\n\nhint: write mulligan run --dry-run PLAN.toml\n"
    ),
    ("gone.toml",): "error: gone.toml: no such file\n",
}


@pytest.mark.parametrize("args", REFUSED, ids=" ".join)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(run, tmp_path, args):
    assert run(*args) == (2, "", REFUSED[args])
    assert not (tmp_path / "home").exists()


@pytest.mark.real
def test_a_plan_runs_and_its_report_is_written(tmp_path):
    plan = PLAN.replace('git = "worktree"\n', "")
    (tmp_path / "greet.toml").write_text(plan)
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", "run", "--report", "report.md", "greet.toml"],
        cwd=tmp_path,
        env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home"), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "## one\n\ngood" in (tmp_path / "told.txt").read_text()
    assert "mulligan: plan greet is done: 2 of 3 agents succeeded" in done.stderr
    assert (tmp_path / "report.md").read_text().startswith("# greet is done\n")


@pytest.mark.parametrize(
    ("file", "why"),
    [("gone/r.md", "there is no folder 'gone'"), ("home", "it is a folder")],
)
def test_a_report_that_cannot_be_written_is_noticed_before_anybody_pays(run, tmp_path, file, why):
    (tmp_path / "home").mkdir(mode=0o700)
    words = f"error: --report cannot be written to {file!r}: {why}\n\nhint: name another file\n"
    assert run("--report", file, "greet.toml", plan=ONCE) == (2, "", words)
    assert not (tmp_path / "ran").exists()


# Its agent fails the first time, and succeeds the second.
ONCE = """
[[phases]]
name = "a"
[[phases.agents]]
name = "one"
command = ["sh", "-c", "rm -rf gone; test -e ran || { touch ran; exit 3; }"]
"""


@pytest.mark.real
def test_a_plan_that_goes_on_writes_its_report_as_well(tmp_path):
    (tmp_path / "gone").mkdir()
    (tmp_path / "once.toml").write_text(ONCE)

    def mulligan(*argv):
        done = subprocess.run(
            [sys.executable, "-m", "mulligan", *argv],
            cwd=tmp_path,
            env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr

    code, said = mulligan("run", "--report", "gone/r.md", "once.toml")
    assert (code, "the report could not be written to gone/r.md: no such file" in said) == (1, True)
    (tmp_path / "gone").mkdir()
    code, said = mulligan("resume", "--report", "gone/r.md")  # done, and its report is not there
    assert (code, "the report could not be written to gone/r.md: no such file" in said) == (1, True)
    (tmp_path / "ran").unlink()
    assert mulligan("run", "once.toml")[0] == 1
    assert mulligan("resume", "--report", "r.md")[0] == 0
    assert (tmp_path / "r.md").read_text().startswith("# once is done\n")


@pytest.mark.real
def test_a_plan_is_taken_up_from_where_its_agents_run(tmp_path):
    folder = tmp_path / "repository" / "plans"
    folder.mkdir(parents=True)
    (folder / "once.toml").write_text(f'cwd = ".."\n{ONCE}')
    for words, code in ((["run", "plans/once.toml"], 1), (["resume"], 0)):
        done = subprocess.run(
            [sys.executable, "-m", "mulligan", *words],
            cwd=folder.parent,
            env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code


@pytest.mark.real
@pytest.mark.parametrize("cwd", ["", 'cwd = ".."'], ids=["by default", "as it says"])
def test_a_plan_runs_from_where_its_file_lies(tmp_path, cwd):
    folder = tmp_path / "repository" / "plans"
    folder.mkdir(parents=True)
    agent = '{ name = "one", command = ["touch", "here"] }'
    (folder / "p.toml").write_text(f'{cwd}\n[[phases]]\nname = "a"\nagents = [{agent}]\n')
    subprocess.run(
        [sys.executable, "-m", "mulligan", "run", "repository/plans/p.toml"],
        cwd=tmp_path,
        env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (folder.parent / "here" if cwd else folder / "here").exists()


@pytest.mark.real
def test_a_plan_runs_in_the_folder_that_is_named_and_tells_who_asked(tmp_path):
    """--cwd is where the plan's own cwd starts from; its prompt files stay where they are."""
    (tmp_path / "plans").mkdir()
    (tmp_path / "repository" / "sub").mkdir(parents=True)
    (tmp_path / "plans" / "ask.md").write_text("Read this")
    agent = '{ command = ["tee", "here"], prompt_file = "ask.md", input = "stdin" }'
    words = f'cwd = "sub"\n[[phases]]\nname = "a"\nagents = [{agent}]\n'
    (tmp_path / "plans" / "p.toml").write_text(words)
    secret = "sk-planted-0123456789abcdefghij"
    told = ["--notify", "sh -c 'cat > told'", "--name", f"key {secret}"]

    def mulligan(*argv: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "mulligan", *argv],
            cwd=tmp_path,
            env={**os.environ, "MULLIGAN_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    place = ["--cwd", "repository", "plans/p.toml"]
    assert f"folder     {tmp_path}/repository/sub\n" in mulligan("run", "--dry-run", *place)
    mulligan("run", *told, *place)
    assert (tmp_path / "repository" / "sub" / "here").read_text() == "Read this"
    news = json.loads((tmp_path / "told").read_text())
    assert (news["event"], news["status"], news["cwd"]) == (
        "over",
        "done",
        str(tmp_path / "repository"),
    )
    assert news["name"].startswith("key ")
    assert secret not in news["name"] + mulligan("runs")


def test_an_agent_of_a_plan_is_resumed_with_its_plan(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    runs = RunStore()
    runs.files("k3fqzz.a.one")
    made = RunMade(0.0, "generic", "true", "/", "host", 0, "", {}, [], parent="k3fqzz")
    runs.make("k3fqzz.a.one", made)
    with pytest.raises(SystemExit) as done:
        main(["resume", "k3fqzz.a.one"])
    assert (done.value.code, capsys.readouterr().err) == (
        2,
        (
            "error: run k3fqzz.a.one is an agent of the plan k3fqzz, which controls it\n\n"
            "hint: mulligan resume k3fqzz resumes both\n"
        ),
    )

"""Plans from files: what they may say, and what is refused in which words."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.loader import load_policy
from mulligan.core.backoff import Exponential, Fixed, Linear, Schedule
from mulligan.core.failure import Effects, Kind
from mulligan.core.policy import Policy, Rule
from mulligan.core.presets import PRESETS, preset
from mulligan.core.timeouts import Timeouts
from mulligan.errors import FileError, SettingError
from mulligan.run.attempt.policy import run_policy
from mulligan.run.plan.load import load_plan, plan_data, plan_from_data
from mulligan.run.plan.model import Agent, Phase, Plan

RUN = Path(__file__).parents[3] / "src" / "mulligan" / "run"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load the words as a file called review.toml in the current folder."""
    monkeypatch.chdir(tmp_path)

    def load(words: str) -> Plan:
        (tmp_path / "review.toml").write_text(words, encoding="utf-8")
        return load_plan("review.toml")

    return load


A_PHASE = '[[phases]]\nname = "a"\n'
ONE = f'{A_PHASE}agents = [{{ program = "claude", prompt = "Review it" }}]\n'


def two(more: str = "", agents: str = '{ name = "x", command = ["x"] }') -> str:
    """A phase of two agents, and a second one with `more` in it."""
    return (
        f'{A_PHASE}agents = [{{ name = "one", command = ["x"] }}, {{ command = ["y"] }}]\n'
        f'[[phases]]\nname = "b"\nagents = [{agents}]\n{more}'
    )


def test_a_file_can_say_everything_a_plan_knows(load):
    plan = load("""
        name = "nightly"
        concurrency = 3
        providers = { claude = 2, codex = 1 }
        cost_limit = 12.5
        variables = { branch = "main" }
        env = { CI = "1" }
        cwd = "src"
        git = "stash"
        commit_prefix = "night: "

        [[phases]]
        name = "port"
        parallel = false
        on_failure = "require_minimum"
        minimum = 1
        concurrency = 2
        policy = "pipeline"
        verify = ["pytest", "-q"]
        verify_timeout = "20m"
        variables = { module = "api" }
        git = "worktree"
        merge = false

        [[phases.agents]]
        name = "porter"
        program = "claude"
        args = ["--model", "opus"]
        prompt = "Port {{module}} on {{branch}} for {{who}}"
        input = "stdin"
        variables = { who = "me" }
        output = "port.md"
        provider = "anthropic"
        env = { DEBUG = "1" }
        cwd = "lib"
        timeout = "2h"
        idle = "15m"
        may_restart = true

        [[phases]]
        name = "tell"
        needs = []
        agents = [{ command = ["./tell", "all"], prompt = "Done" }]
    """)
    porter = Agent(
        name="porter",
        program="claude",
        args=("--model", "opus"),
        prompt="Port {{module}} on {{branch}} for {{who}}",
        input="stdin",
        variables={"who": "me"},
        output="port.md",
        provider="anthropic",
        env={"DEBUG": "1"},
        cwd="lib",
        timeout=7200,
        idle=900,
        may_restart=True,
    )
    port = Phase(
        name="port",
        agents=(porter,),
        parallel=False,
        on_failure="require_minimum",
        minimum=1,
        concurrency=2,
        policy="pipeline",
        verify=("pytest", "-q"),
        verify_timeout=1200,
        variables={"module": "api"},
        git="worktree",
        merge=False,
    )
    tell = Phase(name="tell", needs=(), agents=(Agent(command=("./tell", "all"), prompt="Done"),))
    assert plan == Plan(
        name="nightly",
        phases=(port, tell),
        concurrency=3,
        providers={"claude": 2, "codex": 1},
        cost_limit=12.5,
        variables={"branch": "main"},
        env={"CI": "1"},
        cwd="src",
        git="stash",
        commit_prefix="night: ",
    )


def test_a_plan_without_a_name_is_called_like_its_file(load):
    assert load(ONE).name == "review"


@pytest.mark.parametrize("name", PRESETS)
def test_a_phase_s_policy_can_be_a_preset_by_name(load, name):
    assert load(f'{ONE}policy = "{name}"').phases[0].policy == name


def test_a_table_that_changes_nothing_is_the_pipeline_of_r_p1(load):
    policy = load(f'{ONE}policy = {{ name = "pipeline" }}').phases[0].policy
    assert policy == preset("pipeline")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_in_a_table_is_the_one_by_its_name(load, name):
    policy = load(f'{ONE}policy = {{ preset = "{name}", name = "{name}" }}').phases[0].policy
    assert policy.rules == run_policy(name).rules
    assert policy.horizon == run_policy(name).horizon


def test_a_horizon_alone_is_the_longest_wait(load):
    policy = load(f'{ONE}policy = {{ horizon = "10m" }}').phases[0].policy
    assert (policy.horizon, policy.in_place) == (600.0, 600.0)
    policy = load(f'{ONE}policy = {{ preset = "default", horizon = "10m" }}').phases[0].policy
    assert (policy.horizon, policy.in_place) == (600.0, 120.0)


def test_the_words_of_r_p1_say_what_the_pipeline_is(load):
    words = (
        'policy = { name = "pipeline", max_retries = 3, retry_delays = [120, 300, 900, 1800], '
        'jitter = 30, max_wait = 21600, partial_failure = "fail_fast" }'
    )
    phase = load(ONE + words).phases[0]
    assert (phase.policy, phase.on_failure) == (preset("pipeline"), "fail_fast")


def test_the_words_of_r_p1_change_what_they_name(load):
    words = 'policy = { max_retries = 1, retry_delays = [10, "1m"], jitter = 0, max_wait = "1h" }'
    policy = load(ONE + words).phases[0].policy
    assert isinstance(policy, Policy)
    rule = Rule(attempts=2, backoff=Schedule(waits=(10, 60)), hint="at_least")
    assert dict(policy.rules) == dict.fromkeys(preset("pipeline").rules, rule)
    assert (policy.in_place, policy.horizon, policy.patience) == (3600, 3600, 7200)


def test_a_jitter_that_nobody_stated_does_not_outgrow_short_delays(load):
    policy = load(f"{ONE}policy = {{ retry_delays = [2, 5] }}").phases[0].policy
    assert isinstance(policy, Policy)
    backoff = policy.rules[Kind.SERVER].backoff
    assert backoff == Schedule(waits=(2, 5), jitter="additive", spread=2)


def test_a_jitter_alone_is_added_to_the_delays_of_r_b13(load):
    policy = load(f"{ONE}policy = {{ jitter = 5 }}").phases[0].policy
    assert isinstance(policy, Policy)
    waits = Schedule(waits=(120, 300, 900, 1800), jitter="additive", spread=5)
    assert policy.rules[Kind.SERVER].backoff == waits


def test_delays_leave_a_rule_that_has_its_own_backoff_alone(load):
    words = (
        '[phases.policy]\npreset = "default"\nretry_delays = [7]\njitter = 0\n'
        'rules.server.backoff = { shape = "fixed", wait = 3 }'
    )
    policy = load(ONE + words).phases[0].policy
    assert isinstance(policy, Policy)
    assert policy.rules[Kind.SERVER].backoff == Fixed(wait=3)
    assert policy.rules[Kind.NETWORK].backoff == Schedule(waits=(7,))


def test_a_phase_s_table_says_the_same_as_a_policy_file(load, tmp_path):
    words = 'preset = "skill"\nattempts = 7\ndeadline = "2h"\n'
    (tmp_path / "policy.toml").write_text(f'name = "a"\n{words}')
    assert load(f"{ONE}[phases.policy]\n{words}").phases[0].policy == load_policy("policy.toml")


@pytest.mark.parametrize("place", ["{} = {!r}", "policy = {{ {} = {!r} }}"])
@pytest.mark.parametrize("mode", ["fail_fast", "continue"])
def test_partial_failure_is_another_word_for_on_failure(load, place, mode):
    assert load(ONE + place.format("partial_failure", mode)).phases[0].on_failure == mode


REFUSED = {
    # What stands in the file: what is said about it, after "review.toml".
    "": ": is not a plan: it has no phases; a plan begins with [[phases]]; a policy is read by "
    "mulligan explain",
    "phases = []": ": a plan needs phases; got none",
    "phases = 3": ":1: phases: needs an array; got 3",
    "phases = [3]": ":1: phases[0]: needs a table; got 3",
    "[[phases]]\nagents = []": ":1: phases[0].name: is missing",
    A_PHASE: ":1: phases[0].agents: is missing",
    f"{A_PHASE}agents = []": ":1: phases[0]: phase 'a' has no agents",
    f"{ONE}parralel = true": ":4: phases[0].parralel: unknown key; did you mean 'parallel'?",
    f'{ONE}depends_on = ["b"]': ":4: phases[0].depends_on: unknown key; mulligan's word is 'needs'",
    f"{ONE}max_retries = 3": ":4: phases[0].max_retries: unknown key; 'max_retries' belongs in "
    "a phase's policy, [phases.policy]",
    f"concurency = 3\n{ONE}": ":1: concurency: unknown key; did you mean 'concurrency'?",
    f"minimum = 3\n{ONE}": ":1: minimum: unknown key; 'minimum' belongs in a phase, [[phases]]",
    f"concurrency = 0\n{ONE}": ":1: concurrency: needs at least 1; got 0",
    f"concurrency = true\n{ONE}": ":1: concurrency: needs a whole number; got true",
    f"cost_limit = -1\n{ONE}": ":1: cost_limit: needs more than 0; got -1",
    f"providers = {{ claude = 0 }}\n{ONE}": ":1: providers.claude: needs at least 1; got 0",
    f"variables = {{ n = 3 }}\n{ONE}": ":1: variables.n: needs text; got 3",
    f'variables = {{ outputs = "x" }}\n{ONE}': ":1: variables.outputs: a variable needs a name of "
    "letters, digits, '_' or '-', other than outputs; got 'outputs'",
    f'git = "stsh"\n{ONE}': ":1: git: needs one of off, commit, stash, snapshot, worktree; got "
    "'stsh'; did you mean 'stash'?",
    two("minimum = 2"): ":7: phases[1].minimum: belongs to on_failure = 'require_minimum'; got 2 "
    "with 'fail_fast'",
    two('on_failure = "require_minimum"'): ":7: phases[1].on_failure: is 'require_minimum', which "
    "needs a minimum; got none",
    two('on_failure = "require_minimum"\nminimum = 2'): ":8: phases[1].minimum: needs 1 to 1, as "
    "many as there are agents; got 2",
    two('on_failure = "require_minimum"\nminimum = 0'): ":8: phases[1].minimum: needs 1 to 1, as "
    "many as there are agents; got 0",
    two('partial_failure = "carry_on"'): ":7: phases[1].partial_failure: needs one of fail_fast, "
    "continue, require_minimum; got 'carry_on'",
    two('partial_failure = "continue"\non_failure = "continue"'): ":7: phases[1].partial_failure: "
    "given together with on_failure, and both mean the same; keep one",
    two('policy = { partial_failure = "cont" }'): ":7: phases[1].policy.partial_failure: needs "
    "one of fail_fast, continue, require_minimum; got 'cont'; did you mean 'continue'?",
    two('needs = ["c"]'): ":7: phases[1].needs: names phases before it (those are a); got 'c'",
    two('needs = "a"'): (
        ":7: phases[1].needs: needs an array; got 'a'; write [\"…\"], one string per word"
    ),
    two().replace('"b"', '"a"'): ":5: phases[1].name: needs to differ from phases[0].name; both "
    "are 'a'",
    two().replace('"b"', '"b/c"'): ":4: phases[1]: a phase needs a name of at most 40 "
    "letters, digits, '_' or '-'; got 'b/c'",
    two().replace('"one"', '"y"'): ":3: phases[0].agents[1].name: needs to differ from "
    "agents[0].name; both are 'y'",
    two(agents='{ command = "pytest -q" }'): ":6: phases[1].agents[0].command: needs an array; "
    "got 'pytest -q'; write [\"…\"], one string per word",
    two(agents="{ args = [] }"): ":6: phases[1].agents[0]: an agent needs either command or "
    "program; got both or neither",
    two(agents='{ program = "claude" }'): ":6: phases[1].agents[0].program: 'claude' needs a "
    "prompt or a prompt_file",
    two(agents='{ command = ["x"], args = ["y"] }'): ":6: phases[1].agents[0].args: belong to "
    "program; a command has its own",
    two(agents='{ program = "cluade", prompt = "x" }'): ":6: phases[1].agents[0].program: 'cluade' "
    "is not known; did you mean 'claude'?; others are started with command",
    two(agents='{ program = "aider", prompt = "x", input = "stdin" }'): ":6: phases[1].agents[0]"
    '.input: aider reads no prompt from stdin; write input = "argument"',
    two(agents='{ program = "claude", prmpt = "x" }'): ":6: phases[1].agents[0].prmpt: unknown "
    "key; did you mean 'prompt'?",
    two(agents='{ program = "claude", prompt = "Do {{it}}" }'): ":6: phases[1].agents[0].prompt: "
    "names {{it}}; known here are outputs.a, outputs.a.one, outputs.a.y; write \\{{ for braces "
    "that mean nothing",
    two('variables = { item = "1" }', '{ program = "claude", prompt = "Do {{itme}}" }'): ":6: "
    "phases[1].agents[0].prompt: names {{itme}}; known here are item, outputs.a, outputs.a.one, "
    "outputs.a.y; did you mean {{item}}?",
    two("needs = []", '{ program = "claude", prompt = "{{outputs.a}}" }'): ":6: phases[1].agents"
    "[0].prompt: names {{outputs.a}}; known here are none: there are no variables, and no phase "
    "before it; phase 'b' does not need 'a': write needs = [\"a\"]",
    two(agents='{ program = "claude", prompt = "{{outputs.b.x}}" }'): ":6: phases[1].agents[0]"
    ".prompt: names {{outputs.b.x}}; known here are outputs.a, outputs.a.one, outputs.a.y; agents "
    "of one phase do not see each other's outputs; ask in a later phase",
    two(agents='{ program = "claude", prompt_file = "gone.md" }'): ":6: phases[1].agents[0]"
    ".prompt_file: 'gone.md' cannot be read: no such file or directory",
    two(agents='{ program = "claude", prompt_file = "../x.md" }'): ":6: phases[1].agents[0]"
    ".prompt_file: '../x.md' cannot be read: no such file or directory",
    two(agents='{ command = ["x"], output = "a" }, { command = ["z"], output = "a" }'): ":6: "
    "phases[1].agents[1].output: 'a' is the file of b/x as well; give each agent a file of its own",
    two(agents='{ command = ["x"], output = "a" }, { command = ["z"], output = "./a" }'): ":6: "
    "phases[1].agents[1].output: './a' is the file of b/x as well; give each agent a file of its "
    "own",
    f'git = "stash"\n{two()}': ":2: phases[0].git: git mode 'stash' needs a tree for one agent at "
    "a time, and 2 run in parallel: one would set the other's edits aside; use 'worktree'; or "
    "parallel = false",
    two('policy = "pipline"'): ":7: phases[1].policy: needs one of default, skill, tools, "
    "pattern, surface, pipeline, subagent, or a table; got 'pipline'; did you mean 'pipeline'?",
    two(
        "policy = { breaker = {} }"
    ): ":7: phases[1].policy.breaker: has no effect on programs: it is "
    "for calls that share a target; a program has the limits of its account; leave it out",
    two('policy = { store = "x" }'): ":7: phases[1].policy.store: has no effect on programs: it is "
    "where calls share their state; runs share theirs by MULLIGAN_STORE; leave it out",
    two(
        "policy = { timeouts = { read = 5 } }"
    ): ":7: phases[1].policy.timeouts.read: has no effect "
    "on programs: their connections cannot be observed; write timeouts.total, or an agent's idle",
    two("policy = 3"): ":7: phases[1].policy: needs a preset's name or a table; got 3",
    two("policy = { retry_delay = [1] }"): ":7: phases[1].policy.retry_delay: unknown key; did you "
    "mean 'retry_delays'?",
    two("policy = { retry_delays = 3 }"): ":7: phases[1].policy.retry_delays: needs an array of "
    "durations; got 3; write retry_delays = [120, 300, 900, 1800]",
    two("[phases.policy]\nretry_delays = [1, 0]"): ":8: phases[1].policy.retry_delays[1]: needs "
    "more than 0 s; got 0",
    two('[phases.policy]\nmax_wait = "6 hours"'): ":8: phases[1].policy.max_wait: needs a duration "
    'such as 90, "90s", "1h30m" or "250ms"; got \'6 hours\'',
    two('[phases.policy]\nmax_wait = "6h"\nhorizon = "5h"'): ":8: phases[1].policy.max_wait: given "
    "together with horizon; max_wait sets both; keep one",
    two('[phases.policy]\npreset = "skill"\njitter = 3'): ":9: phases[1].policy.jitter: is added "
    "to retry_delays, and there are none; add them",
    two("[phases.policy]\nmax_retries = -1"): ":8: phases[1].policy.max_retries: needs a whole "
    'number >= 0, or "any" where time is the bound; got -1',
    two("[phases.policy.rules.server]\natempts = 3"): ":8: phases[1].policy.rules.server.atempts: "
    "unknown key; did you mean 'attempts'?",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place_and_what_to_do(load, words):
    with pytest.raises(FileError, match="^" + re.escape(f"review.toml{REFUSED[words]}") + "$"):
        load(words)


def test_a_minimum_larger_than_the_phase_is_refused_before_anybody_pays():  # R-P2
    with pytest.raises(SettingError, match=r"^minimum needs 1 to 1, as many as there are agents"):
        Phase(name="a", agents=(Agent(command=("x",)),), on_failure="require_minimum", minimum=2)


def test_a_python_plan_cannot_name_a_preset_that_there_is_not():
    with pytest.raises(SettingError, match=r"^no preset 'pipline'"):
        Phase(name="a", agents=(Agent(command=("x",)),), policy="pipline")


def test_a_link_that_leads_out_of_the_plan_s_folder_is_not_followed(load, tmp_path):
    home = tmp_path.with_name(f"{tmp_path.name}-outside")
    home.mkdir()
    (home / "secret.md").write_text("mine")
    (tmp_path / "prompt.md").symlink_to(home / "secret.md")
    words = f'{A_PHASE}agents = [{{ program = "claude", prompt_file = "%s" }}]'
    with pytest.raises(FileError, match="leads out of the plan's folder"):
        load(words % "prompt.md")
    assert load(words % (home / "secret.md")).phases[0].agents[0].prompt_file  # absolute: meant


def test_a_link_inside_the_plan_s_folder_is_followed(load, tmp_path):
    (tmp_path / "real.md").write_text("Do it")
    (tmp_path / "prompt.md").symlink_to("real.md")
    assert load(f'{A_PHASE}agents = [{{ program = "claude", prompt_file = "prompt.md" }}]')


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
lengths = st.floats(0.001, 1e6)
tables = st.dictionaries(texts, texts, max_size=3)
backoffs = st.one_of(
    st.builds(Exponential, first=st.floats(0.1, 1), factor=st.floats(1, 9), cap=st.floats(1, 99)),
    st.builds(Linear, first=st.floats(0.1, 1), step=st.floats(0, 9), cap=st.floats(1, 99)),
    st.builds(Fixed, wait=lengths),
    st.builds(Schedule, waits=st.lists(lengths, min_size=1, max_size=4).map(tuple)),
)
rules = st.builds(
    Rule,
    attempts=st.none() | st.integers(1, 9),
    backoff=backoffs,
    hint=st.sampled_from(["replace", "at_least"]),
    missing_hint=st.none() | backoffs,
    check=st.sampled_from(["never", "if_given", "required"]),
)
policies = st.builds(
    Policy,
    name=texts,
    rules=st.dictionaries(st.sampled_from(list(Kind)), rules, max_size=3),
    statuses=st.none() | st.frozensets(st.integers(100, 599), max_size=3),
    effects=st.none() | st.sampled_from(list(Effects)),
    deadline=st.none() | lengths,
    most_attempts=st.none() | st.integers(1, 9),
    patience=st.none() | lengths,
    budget=st.none() | lengths,
    in_place=lengths,
    horizon=lengths,
    timeouts=st.none() | st.builds(Timeouts, total=st.none() | lengths, shrink=st.floats(0.1, 1)),
    codes=st.dictionaries(texts, st.sampled_from(list(Kind)), max_size=2),
    key_ttl=st.none() | lengths,
)
agents = st.builds(
    Agent,
    name=names,
    command=st.lists(texts.filter(bool), min_size=1, max_size=3).map(tuple),
    prompt=texts,
    input=st.sampled_from(["argument", "stdin"]),
    variables=tables,
    provider=texts,
    env=tables,
    cwd=texts,
    timeout=st.none() | lengths,
    idle=st.none() | lengths,
    may_restart=st.booleans(),
)


@st.composite
def phases(draw, name):
    found = draw(st.lists(agents, min_size=1, max_size=3, unique_by=lambda each: each.name))
    mode = draw(st.sampled_from(["fail_fast", "continue", "require_minimum"]))
    return Phase(
        name=name,
        agents=tuple(found),
        needs=draw(st.sampled_from([None, ()])),
        parallel=draw(st.booleans()),
        on_failure=mode,
        minimum=draw(st.integers(1, len(found))) if mode == "require_minimum" else None,
        concurrency=draw(st.none() | st.integers(1, 9)),
        policy=draw(st.sampled_from(list(PRESETS)) | policies),
        verify=tuple(draw(st.lists(texts, max_size=2))),
        verify_timeout=draw(lengths),
        variables=draw(tables),
        git=draw(st.sampled_from([None, "off", "commit", "stash", "snapshot", "worktree"])),
        merge=draw(st.booleans()),
    )


@st.composite
def plans(draw):
    found = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    return Plan(
        name=draw(texts),
        phases=tuple(draw(phases(name)) for name in found),
        concurrency=draw(st.integers(1, 99)),
        providers=draw(st.dictionaries(texts, st.integers(1, 9), max_size=2)),
        cost_limit=draw(st.none() | st.floats(0.01, 1e6)),
        variables=draw(tables),
        env=draw(tables),
        cwd=draw(texts),
        git=draw(st.sampled_from(["off", "commit", "stash", "snapshot", "worktree"])),
        commit_prefix=draw(texts),
    )


@given(plans())
def test_what_a_run_keeps_of_its_plan_is_the_plan(plan):
    assert plan_from_data(json.loads(json.dumps(plan_data(plan)))) == plan


def test_a_policy_with_a_validator_cannot_be_kept():
    policy = preset("default").but(validator=lambda _: True)
    plan = Plan(phases=(Phase(name="a", agents=(Agent(command=("x",)),), policy=policy),))
    with pytest.raises(SettingError, match=r"^policy 'default' has a validator, which a plan"):
        plan_data(plan)


def what_executes() -> set[str]:
    """Every attribute that is read by the modules that execute plans."""
    found: set[str] = set()
    for path in RUN.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        is_reader = path.stem in {"model", "load", "check", "lint", "schema", "report"}
        if is_reader or not re.search(r"from \.+(plan\.)?model import", source):
            continue
        tree = ast.parse(source)
        found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return found


@pytest.mark.parametrize("cls", [Plan, Phase, Agent])
def test_every_setting_of_a_plan_has_an_effect(cls):
    pytest.importorskip("mulligan.run.plan.conductor", reason="nothing executes plans")
    assert {each.name for each in fields(cls)} <= what_executes()


def test_a_phase_without_a_policy_has_the_defaults_of_a_pipeline(load):  # R-P1
    none, empty = load(two()).phases[1], load(two("policy = {}")).phases[1]
    rules = preset("pipeline").rules
    assert preset(none.policy).rules == rules == empty.policy.rules
    assert (none.on_failure, empty.policy.horizon) == ("fail_fast", 21_600)
    assert {rule.attempts for rule in rules.values()} == {4}


@pytest.mark.parametrize(
    "field", ["breaker", "breakers", "gate", "tokens", "effects", "codes", "key_ttl", "store"]
)
def test_what_has_no_effect_on_programs_is_refused_in_a_phase(load, field):
    with pytest.raises(FileError, match=rf"policy\.{field}: has no effect on programs: it is "):
        load(two(f"policy = {{ {field} = 1 }}"))

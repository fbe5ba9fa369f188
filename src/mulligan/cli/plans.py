"""`mulligan run PLAN.toml` and its `--dry-run`."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config.dump import as_data
from ..core.duration import duration_text
from ..core.policy import Policy
from ..core.redaction import clean, mask, printable
from ..errors import GitRefused, GitStopped, SettingError, TreeBusy
from ..run.attempt.options import DriveOptions
from ..run.attempt.policy import longest_wait, run_policy
from ..run.context import open_context
from ..run.git import interruptible
from ..run.plan.drive import conduct, make_plan
from ..run.plan.lint import lint_plan
from ..run.plan.load import load_plan
from ..run.plan.prompts import command_for, variables_of
from ..run.plan.validate import available_outputs
from ..run.show.messages import money
from ..run.show.plan_view import PlanTable
from ..run.show.standard_streams import StandardStreams
from . import EXIT_INTERRUPTED, Unusable
from .run_start import check_name, notify_argv, working_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..run.context import RunContext
    from ..run.journal.store import ClaimedRun
    from ..run.plan.model import Agent, KeptPlan, Phase, Plan

__all__ = ("check_report", "drive_plan", "run_plan", "show_plan")

# What belongs to a bare command: in a plan each phase and each agent says it for itself.
_ELSEWHERE = {
    "agent": "an agent, as program",
    "horizon": "a phase's policy, as horizon",
    "attempts": "a phase's policy, as attempts",
    "policy": "a phase, as policy",
    "idle": "an agent, as idle",
    "timeout": "an agent, as timeout",
    "deadline": "a phase's policy, as deadline",
    "own_retries": "an agent's args or env",
    "may_restart": "an agent, as may_restart",
    "final_only": "no place: agents of a plan print into files",
    "stream": "no place: agents of a plan print into files",
}


def run_plan(
    words: tuple[str, ...], *, is_dry: bool, report: str, is_json: bool, **options: Any
) -> int:
    """Run the plan that `words` names, or show what would run."""
    file, *more = words
    if more:
        raise Unusable(
            f"a plan takes no arguments; got {shlex.join(more)}",
            f"options stand before the file: mulligan run --dry-run {shlex.quote(file)}",
        )
    for option, place in _ELSEWHERE.items():
        given = options.pop(option)
        if given is not None and given is not False and given != "":  # 0 is something to say
            params = click.get_current_context().command.params
            flag = next(each.opts[0] for each in params if each.name == option)
            raise Unusable(f"{flag} is for a bare command", f"in a plan it belongs in {place}")
    name, notify = options["name"], notify_argv(options["notify"])
    check_name(name)
    folder = Path(file).parent.resolve()
    home = working_folder(options["cwd"]) if options["cwd"] else folder
    plan = load_plan(file, home=home)
    if is_dry:
        show_plan(plan, file, folder, home, is_json=is_json)
        return 0
    check_report(report)
    with open_context(os.environ, ends_process=True) as context:
        try:
            with interruptible(context.stop):
                claimed, kept = make_plan(
                    context, plan, folder=folder, cwd=home, name=name, notify=notify
                )
        except GitStopped:
            return EXIT_INTERRUPTED
        except (SettingError, GitRefused) as wrong:
            seen = "; mulligan lint shows all that is in its way"
            hint = f"nothing was started{'' if isinstance(wrong, TreeBusy) else seen}"
            raise Unusable(str(wrong), hint) from None
        how = DriveOptions(options["park"])
        return drive_plan(context, claimed, kept, how, is_json=is_json, report=report)


def check_report(file: str) -> None:
    """Refuse a report that cannot be written, before anything has cost money."""
    path = Path(file)
    if not file:
        return
    if not path.parent.is_dir():
        why = f"there is no folder {clean(str(path.parent))!r}"
    elif path.is_dir():
        why = "it is a folder"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        why = "permission denied"
    else:
        return
    raise Unusable(f"--report cannot be written to {clean(file)!r}: {why}", "name another file")


def drive_plan(
    context: RunContext,
    claimed: ClaimedRun,
    kept: KeptPlan,
    how: DriveOptions,
    *,
    is_json: bool = False,
    is_table_refused: bool = False,
    report: str = "",
) -> int:
    """Drive the plan that this process holds, and show it; the exit code."""
    environ = {**context.environ, "TERM": "dumb"} if is_table_refused else context.environ
    table = PlanTable(
        kept.plan,
        run=claimed.id,
        streams=StandardStreams(context.stop),
        environ=environ,
        is_json=is_json,
        report=Path(report) if report else None,
    )
    with closing(table):
        code, _ = conduct(context, claimed, kept, table, how)
        # A reader of the report must not get that of an earlier run.
        return code or int(table.is_unreported)


def show_plan(plan: Plan, file: str, folder: Path, home: Path, *, is_json: bool) -> None:
    """Print what would run, phase by phase; nothing is executed.

    The file of the plan and its prompt files are in `folder`; its `cwd` starts from `home`.
    """
    if is_json:
        click.echo(json.dumps(_data(plan, file, folder, home), indent=2))
        return
    for line in _lines(plan, file, folder, home):
        click.echo(line)
    for each in lint_plan(plan, folder=folder, home=home):
        click.echo(f"warning: {each}", err=True)


def _asked(
    plan: Plan, phase: Phase, agent: Agent, folder: Path
) -> tuple[tuple[str, ...], str | None]:
    """The command of an agent, with words in place of outputs; masked, as all that we print."""
    argv, stdin = command_for(
        agent,
        folder=folder,
        variables=variables_of(plan, phase, agent),
        outputs=available_outputs(plan, phase),
    )
    shown = tuple(mask(printable(word)) for word in argv)
    return shown, None if stdin is None else mask(printable(stdin.decode()))


def _lines(plan: Plan, file: str, folder: Path, home: Path) -> Iterator[str]:
    count = sum(len(phase.agents) for phase in plan.phases)
    yield f"plan       {printable(plan.name)}, from {file}"
    yield f"agents     {count} in {_number(len(plan.phases), 'phase')}"
    slots = "".join(f", {n} of {name}" for name, n in plan.providers.items())
    yield f"at once    {plan.concurrency} agents{slots} at most"
    if plan.cost_limit is not None:
        yield f"cost       nothing more is started after {money(plan.cost_limit)}"
    if plan.cwd or home != folder:
        yield f"folder     {printable(str(Path(plan.cwd) if home == folder else home / plan.cwd))}"
    if plan.env:
        yield f"env        {', '.join(plan.env)}"
    for phase in plan.phases:
        yield ""
        yield f"phase      {phase.name}"
        for label, words in _phase(plan, phase):
            yield f"  {label:<8} {words}"
        for agent in phase.agents:
            yield from _agent(plan, phase, agent, folder)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _phase(plan: Plan, phase: Phase) -> Iterator[tuple[str, str]]:
    needs = plan.needs(phase)
    if needs:
        yield "after", ", ".join(needs)
    count, slots = len(phase.agents), phase.concurrency
    how = ", side by side" if phase.parallel else ", one after the other"
    most = f", {slots} at once at most" if slots is not None and phase.parallel else ""
    yield "agents", "1" if count == 1 else f"{count}{how}{most}"
    yield "fails", _fails(phase)
    yield "policy", _policy(phase)
    mode = phase.git or plan.git
    if mode == "worktree":
        yield "git", f"worktree, {'merged into the tree' if phase.merge else 'kept on a branch'}"
    elif mode != "off":
        yield "git", mode
    if phase.verify:
        limit = duration_text(phase.verify_timeout)
        yield "verify", f"{mask(shlex.join(phase.verify))}, {limit} at most"


def _fails(phase: Phase) -> str:
    if phase.on_failure == "require_minimum":
        return f"as soon as {phase.minimum} successes cannot be reached"
    if phase.on_failure == "continue":
        return "if no agent succeeds, when all are over"
    if len(phase.agents) == 1:
        return "if its agent does"
    return "with the first agent that fails, stopping the others"


def _policy(phase: Phase) -> str:
    policy = _policy_of(phase)
    counts = [rule.attempts for rule in policy.rules.values()]
    numbers = [each for each in counts if each is not None]
    attempts = _number(max(numbers), "attempt") if numbers else "attempts as time allows"
    limits = ", limits as time allows" if numbers and None in counts else ""
    return f"{policy.name}: {attempts}{limits}; {_waits(policy)}"


def _waits(policy: Policy) -> str:
    longest, by = longest_wait(policy)
    over = "" if policy.deadline is None else f"ends after {duration_text(policy.deadline)}"
    if by == "deadline":
        return f"{over}, waits included"
    most = f"waits {duration_text(longest)} at most" if longest else "never waits"
    why = f", by its {by}" if by in {"budget", "patience"} else ""
    return f"{most}{why}{over and '; '}{over}"


def _policy_of(phase: Phase) -> Policy:
    return phase.policy if isinstance(phase.policy, Policy) else run_policy(phase.policy)


def _timeout(phase: Phase, agent: Agent) -> str:
    """How long an attempt may take, and which setting says so."""
    policy, own = _policy_of(phase), agent.timeout
    found = [(own, ""), (policy.deadline, ", by its deadline")]
    if own is None and policy.timeouts is not None:
        found.append((policy.timeouts.total, ", by its policy"))
    least = min(((limit, by) for limit, by in found if limit is not None), default=None)
    return "" if least is None else f"{duration_text(least[0])}{least[1]}"


def _agent(plan: Plan, phase: Phase, agent: Agent, folder: Path) -> Iterator[str]:
    argv, stdin = _asked(plan, phase, agent, folder)
    yield f"  agent    {agent.name}"
    rows = [
        ("runs", shlex.join(argv)),
        ("stdin", stdin or ""),
        ("folder", agent.cwd),
        ("env", ", ".join(agent.env)),
        ("output", agent.output),
        ("provider", agent.provider),
        ("timeout", _timeout(phase, agent)),
        ("idle", "" if agent.idle is None else duration_text(agent.idle)),
        ("restarts", "after a crash" if agent.may_restart else ""),
    ]
    for label, words in rows:
        first, *rest = words.split("\n")
        if words:
            yield f"    {label:<8} {first}"
            yield from (f"             {line}".rstrip() for line in rest)


def _data(plan: Plan, file: str, folder: Path, home: Path) -> dict[str, Any]:
    return {
        "plan": plan.name,
        "file": file,
        "concurrency": plan.concurrency,
        "providers": dict(plan.providers),
        "cost_limit": plan.cost_limit,
        "cwd": str((home / plan.cwd).resolve()),
        "env": sorted(plan.env),
        "phases": [_phase_data(plan, phase, folder, home) for phase in plan.phases],
        "warnings": [
            {"key": each.key, "message": each.message, "hint": each.hint}
            for each in lint_plan(plan, folder=folder, home=home)
        ],
    }


# Fields that are shown as they are.
_OF_AGENT = ("output", "timeout", "idle", "may_restart")
_OF_PHASE = ("name", "parallel", "concurrency", "on_failure", "minimum", "merge", "verify_timeout")


def _phase_data(plan: Plan, phase: Phase, folder: Path, home: Path) -> dict[str, Any]:
    policy = _policy_of(phase)
    agents = []
    for agent in phase.agents:
        argv, stdin = _asked(plan, phase, agent, folder)
        about = {
            "name": agent.name,
            "argv": list(argv),
            "stdin": stdin,
            "cwd": str((home / plan.cwd / agent.cwd).resolve()),
            "env": sorted({*plan.env, *agent.env}),
            "provider": agent.provider or agent.program,
        }
        agents.append({**about, **{name: getattr(agent, name) for name in _OF_AGENT}})
    return {
        **{name: getattr(phase, name) for name in _OF_PHASE},
        "needs": list(plan.needs(phase)),
        "git": phase.git or plan.git,
        "verify": list(phase.verify),
        "policy": as_data(policy),
        "longest_wait": longest_wait(policy)[0],
        "agents": agents,
    }

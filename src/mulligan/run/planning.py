"""How a plan becomes a run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .conductor import Conductor
from .plan_file import plan_data, plan_from_data
from .steps import PLAN, Made, Moved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conductor import Table
    from .desk import Claimed, Desk
    from .plan import Plan
    from .stop import Stop
    from .work import World

__all__ = ("conduct", "make_plan", "plan_of", "revive")


def make_plan(
    desk: Desk,
    plan: Plan,
    *,
    folder: Path,
    cwd: Path,
    environ: Mapping[str, str],
    now: float,
    name: str = "",
) -> Claimed:
    """A new run of `plan`, in our hand; nothing is started.

    The run keeps a copy of the plan: what is in its file tomorrow does not change what was begun.

    Args:
        desk: Where runs are kept.
        plan: The plan.
        folder: The folder that its file lies in: where its prompt files are.
        cwd: The folder that its agents run in, as far as it does not name one.
        environ: The environment that its agents inherit.
        now: Epoch seconds.
        name: What the user calls it; the plan's name by default.

    Raises:
        GitError: A phase wants its tree cleaned, and there is none that can be.
    """
    _check_trees(plan, cwd)
    id_ = desk.room((PLAN, plan.name))
    file = desk.files(id_) / "plan.json"
    data = json.dumps({"folder": str(folder), "cwd": str(cwd), "plan": plan_data(plan)})
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8") as opened:
        opened.write(data)
    made = Made(
        at=now,
        agent=PLAN,
        command=f"plan {plan.name}",
        cwd=str(cwd),
        host=os.uname().nodename,
        user=os.geteuid(),
        name=name or plan.name,
        terms={},
        variables=sorted(environ),
    )
    return desk.make(id_, made)


def _check_trees(plan: Plan, cwd: Path) -> None:
    """Refuse git modes where there is no tree that they could work on, before anybody pays."""
    for phase in plan.phases:
        if (phase.git or plan.git) == "off":
            continue
        from .git import Tree

        for folder in {cwd / plan.cwd / agent.cwd for agent in phase.agents}:
            Tree.find(folder).check()


def plan_of(desk: Desk, id_: str) -> tuple[Plan, Path, Path]:
    """The plan of a run, the folder that its file lies in, the folder that it runs in."""
    data = json.loads((desk.files(id_) / "plan.json").read_text(encoding="utf-8"))
    return plan_from_data(data["plan"]), Path(data["folder"]), Path(data["cwd"])


def conduct(
    desk: Desk,
    claimed: Claimed,
    *,
    environ: Mapping[str, str],
    world: World,
    table: Table,
    stop: Stop,
    is_parked_by_exit: bool = False,
) -> int:
    """Drive the plan in our hand until it ends, is parked, or is stopped; the exit code."""
    plan, folder, cwd = plan_of(desk, claimed.id)
    conductor = Conductor(
        desk,
        claimed,
        plan,
        folder=folder,
        cwd=cwd,
        environ=environ,
        world=world,
        table=table,
        stop=stop,
        is_parked_by_exit=is_parked_by_exit,
    )
    code = conductor.go()
    table.over(conductor.report())
    return code


def revive(desk: Desk, id_: str, now: float) -> None:
    """Let what has failed in a plan be tried again, because somebody mended what was wrong."""
    for child, state in desk.all(id_):
        if state.status in {"failed", "limited", "cancelled"}:
            claimed = desk.claim(child, now)
            desk.write(claimed, Moved(now, now, "taken up by hand"), "resumed")
            desk.release(claimed)

"""How a plan becomes a run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.text import presentable
from .conductor import Conductor
from .events import summary
from .notice import NEWS, remember, remembered, send
from .plan_file import plan_data, plan_from_data
from .steps import PLAN, Made, Moved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conductor import Table
    from .desk import Claimed, Desk
    from .plan import Plan
    from .stop import Stop
    from .work import ByHand, World

__all__ = ("conduct", "make_plan", "plan_of", "revive")

# A wait is news from here on, in seconds: as long as a run's own, by the default policy.
_NEWS_AFTER = 120.0


def make_plan(
    desk: Desk,
    plan: Plan,
    *,
    folder: Path,
    cwd: Path,
    environ: Mapping[str, str],
    now: float,
    name: str = "",
    notify: tuple[str, ...] = (),
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
        notify: A program to tell when it waits for long, and when it is over.

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
    if notify:
        remember(desk.files(id_), notify)
    made = Made(
        at=now,
        agent=PLAN,
        command=f"plan {plan.name}",
        cwd=str(cwd),
        host=os.uname().nodename,
        user=os.geteuid(),
        name=presentable(name or plan.name),
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
    by_hand: ByHand | None = None,
) -> int:
    """Drive the plan in our hand until it ends, is parked, or is stopped; the exit code."""
    plan, folder, cwd = plan_of(desk, claimed.id)
    teller = _Teller(desk, claimed.id, world=world, table=table, stop=stop, environ=environ)
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
        by_hand=by_hand,
        waits=teller.waits,
    )
    code = conductor.go()
    teller.over()
    table.over(conductor.report())
    return code


class _Teller:
    """Tells the program that the user named, where there is one."""

    def __init__(
        self,
        desk: Desk,
        id_: str,
        *,
        world: World,
        table: Table,
        stop: Stop,
        environ: Mapping[str, str],
    ) -> None:
        self._desk, self._id, self._argv = desk, id_, remembered(desk.files(id_))
        self._world, self._table, self._stop, self._environ = world, table, stop, environ
        self._told_at = 0.0

    def waits(self, until: float) -> None:
        """All that is left has to wait until then: news if that is long, and was not told yet."""
        if until != self._told_at and until - self._world.clock.wall() > _NEWS_AFTER:
            self._told_at = until
            self._tell("parked", status="waiting", until=until)

    def over(self) -> None:
        """It is not driven any more: news if it has ended."""
        self._tell("over")

    def _tell(self, event: str, **more: object) -> None:
        state = self._desk.look(self._id) if self._argv else None
        if state is None or (event == "over" and state.status not in NEWS):
            return
        news = {"event": event, "run": self._id, **summary(state), **more}
        self._table.notified(send(self._argv, news, stop=self._stop, environ=self._environ))


def revive(desk: Desk, id_: str, now: float, *, is_waking: bool = False) -> None:
    """Let what has failed in a plan be tried again, because somebody mended what was wrong.

    Args:
        desk: Where runs are kept.
        id_: The plan's run.
        now: Epoch seconds.
        is_waking: Whether it is what waits that goes on, and nothing else.
    """
    statuses = {"waiting"} if is_waking else {"failed", "limited", "cancelled"}
    for child, state in desk.all(id_):
        if state.status in statuses:
            claimed = desk.claim(child, now)
            desk.write(claimed, Moved(now, now, "taken up by hand"), "resumed")
            desk.release(claimed)

"""Toolbox: the tools of an agent, run so that a failure is a result that the model can act on.

A call never raises what a tool raised; it returns a `ToolResult`. Only cancellation and other
exceptions that are not subclasses of `Exception` are raised.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from ..api.guard import Guard
from ..api.task import task
from ..calls.async_time import on_trio
from ..calls.clock import world
from ..classify.classifier import classifier as default_classifier
from ..core.duration import Duration, seconds
from ..core.failure import Effects
from ..core.presets import preset
from ..errors import CircuitOpen, NotKept, SettingError
from ..once.api import Once, new_key
from ..once.fingerprint import digest
from ..shared.target import store_for
from .advice import Situation
from .definition import BadArguments, ToolDefinition, identity, jsonable
from .execution import ToolAttempts, Unfinished, execute, verifier
from .repeats import RepeatsOfRuns
from .report import ToolReport
from .results import ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
    from typing import TypeVar, Unpack

    from ..classify.classifier import Classifier
    from ..core.events import Event
    from ..core.policy import Policy
    from ..core.ports import Store
    from .definition import ToolOptions

    F = TypeVar("F", bound=Callable[..., Any])
    T = TypeVar("T")

__all__ = ("Toolbox", "driven")

_run: ContextVar[str] = ContextVar("mulligan.tools.run", default="")


class Toolbox:
    """The tools of an agent.

    Args:
        budget: Time that one task may spend on waits and on attempts after the first: each call by
            itself, or all calls together inside ``with tools.task():``.
        run: Names the agent's run, for idempotency keys. Give one that is the same after a crash;
            by default a toolbox makes one of its own.
        scope: Whose tools they are: the customer, the account. Keys, breakers and limits are kept
            apart by it.
        store: Where keys, breakers and limits are kept; see `Guard`. It has to outlive the process
            if an unsafe call must not be repeated after a crash.
        policy: What is retried, and how: a Policy or the name of a preset.
        repeats: Identical failures after which the model is told to change something; after twice
            as many the call is not made.
        lease: How long a process that has died keeps the key of its call.
        classifier: Reads what tools raise; see ``mulligan.classifier.adding``.
        listeners: Callables that take events.

    Raises:
        SettingError: One of them is invalid.
    """

    def __init__(
        self,
        *,
        budget: Duration = "30s",
        run: str = "",
        scope: str = "",
        store: Store | str | None = None,
        policy: Policy | str = "tools",
        repeats: int = 3,
        lease: Duration = "10s",
        classifier: Classifier | None = None,
        listeners: Iterable[Callable[[Event], None]] = (),
    ) -> None:
        self._budget = seconds(budget, name="budget")
        if repeats < 1:
            raise SettingError(f"repeats needs a whole number >= 1; got {repeats!r}")
        chosen = preset(policy) if isinstance(policy, str) else policy
        # No wait of a tool is longer than the budget, not even one for a limit.
        bound = self._budget
        self._policy = chosen.but(budget=bound, in_place=bound, patience=bound)
        if store is not None:
            store_for(store)  # one that cannot be used is refused here, not in front of a model
        self._given_run, self._own_run, self._scope = run, os.urandom(8).hex(), scope
        self._store, self._lease = store, seconds(lease, name="lease", least=0.1)
        self._classifier, self._listeners = classifier or default_classifier, tuple(listeners)
        self._repeats = RepeatsOfRuns(repeats)
        self._tools: dict[str, ToolDefinition] = {}
        self._guards: dict[str, tuple[Guard, Guard]] = {}

    # Making tools

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Make a tool of a function; it is returned as it is.

        Args:
            function: Plain or async. Its signature becomes the JSON schema, its docstring the
                description.
            **options: See `ToolOptions`.
        """
        if function is None:
            return lambda decorated: self.tool(decorated, **options)
        self.add(ToolDefinition(function, **options))
        return function

    def add(self, tool: ToolDefinition) -> None:
        """Add a tool; two of one name are a mistake."""
        if tool.name in self._tools:
            raise SettingError(f"there is a tool {tool.name!r} already; set name=")
        self._tools[tool.name] = tool

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools, in the order in which they were added."""
        return tuple(self._tools.values())

    # Running them

    @contextmanager
    def task(self, run: str = "") -> Iterator[None]:
        """All calls inside share one budget, and one memory of what has failed.

        Args:
            run: Names the agent's run; by default each task is a run of its own.
        """
        token = _run.set(run or os.urandom(8).hex())
        try:
            with task(budget=self._budget):
                yield
        finally:
            _run.reset(token)

    async def run(
        self,
        name: str,
        args: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        run: str = "",
    ) -> ToolResult:
        """Call a tool as a model asked for it; on asyncio and trio.

        Args:
            name: The tool.
            args: Its arguments: a mapping, or JSON text as it came from the model.
            call_id: The id that the model's provider gave the call. The key of the call is made
                from it; ids that repeat in another session, such as MCP's, must not be given.
            run: Names the agent's run; by default that of `task`, else the toolbox's own.
        """
        return await self._called(name, args, call_id, run or self._current(), is_inline=False)

    def run_sync(
        self,
        name: str,
        args: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        run: str = "",
    ) -> ToolResult:
        """Like `run`, for programs without an event loop."""
        run = run or self._current()
        return driven(lambda: self._called(name, args, call_id, run, is_inline=True))

    async def answer(self, response: Any) -> list[dict[str, Any]]:
        """The results of all tool calls in a model's answer, to be sent back to the model.

        Args:
            response: What the SDK returned: a Message of anthropic, a Response or a ChatCompletion
                of openai. An empty list means that no tool was asked for.
        """
        # Known by its shape: no SDK is loaded here.
        if hasattr(response, "stop_reason"):  # anthropic: Message
            shown: Callable[[ToolResult], dict[str, Any]] = ToolResult.to_anthropic
            blocks = [each for each in response.content if each.type == "tool_use"]
            calls = [(each.name, each.input, each.id) for each in blocks]
        elif hasattr(response, "output"):  # openai: Response
            shown = ToolResult.to_openai_responses
            blocks = [each for each in response.output if each.type == "function_call"]
            calls = [(each.name, each.arguments, each.call_id) for each in blocks]
        elif hasattr(response, "choices"):  # openai: ChatCompletion
            shown = ToolResult.to_openai_chat
            asked = response.choices[0].message.tool_calls or ()
            blocks = [each for each in asked if each.type == "function"]
            calls = [(each.function.name, each.function.arguments, each.id) for each in blocks]
        else:
            raise SettingError(
                f"answer needs a Message of anthropic, a Response or a ChatCompletion of openai; "
                f"got a {type(response).__name__}"
            )
        return [shown(await self.run(name, args, call_id=id_)) for name, args, id_ in calls]

    @property
    def named_run(self) -> str:
        """The run that the program has named, or empty."""
        return _run.get() or self._given_run

    def _current(self) -> str:
        return self.named_run or self._own_run

    async def _called(
        self,
        name: str,
        args: object,
        call_id: str,
        run: str,
        *,
        is_inline: bool,
        behind: frozenset[str] = frozenset(),
    ) -> ToolResult:
        """Find the tool, check its arguments, call it; or the fallback while its circuit is open.

        If `is_inline`, a plain function may block this thread. `behind` are the tools whose
        circuits are open and that this one replaces.
        """
        tool = self._tools.get(name)
        report = ToolReport(self, name, call_id, args, tool)
        repeats, now = self._repeats.of(run), world().clock.now()
        call = digest([name, identity(args, name="args")])
        if repeats.is_stuck(call, now):
            return report.stuck(repeats.failures(call, now))

        def rejected(
            situation: Situation, said: str, fields: tuple[tuple[str, str], ...] = ()
        ) -> ToolResult:
            count = repeats.failed(call, now)
            return report.failed(situation, said, fields=fields, count=count, repeats=repeats)

        if tool is None:
            return rejected(Situation.UNKNOWN_TOOL, "there is no such tool")
        try:
            arguments = tool.arguments(args)
        except BadArguments as wrong:
            return rejected(Situation.BAD_ARGUMENTS, wrong.said, wrong.fields)
        result = await self.perform(
            tool, arguments, tool.function, call_id=call_id, run=run, is_inline=is_inline
        )
        behind |= {name}
        if not isinstance(result.error, CircuitOpen) or tool.fallback in {"", *behind}:
            return result
        answer = await self._called(
            tool.fallback, args, call_id, run, is_inline=is_inline, behind=behind
        )
        if answer.is_error and answer.action != "verify":
            return result  # of a fallback that may have been applied the model has to know
        return replace(answer, tool=name, answered_by=answer.answered_by or tool.fallback)

    async def perform(
        self,
        tool: ToolDefinition,
        arguments: dict[str, Any],
        invoke: Callable[..., Any],
        *,
        call_id: str,
        run: str = "",
        is_inline: bool = False,
        passing: tuple[type[Exception], ...] = (),
    ) -> ToolResult:
        """Call `tool` with arguments that fit, through `invoke`, which calls it once.

        For frameworks that call their tools themselves: `invoke` is their handler.

        Args:
            tool: How it is called.
            arguments: What with.
            invoke: Calls it with these arguments by name; raises what the tool raises.
            call_id: See `run`.
            run: See `run`.
            is_inline: Whether a plain function may block this thread.
            passing: Exceptions by which the framework steers itself; they are raised.
        """
        run, now = run or self._current(), world().clock.now
        call = digest([tool.name, identity(arguments, name="arguments")])
        repeats = self._repeats.of(run)
        report = ToolReport(self, tool.name, call_id, arguments, tool)
        began = now()
        if repeats.is_stuck(call, began):
            return report.stuck(repeats.failures(call, began))
        earlier = repeats.key_in_doubt(call)
        key = self._key(tool, arguments, call_id, run, earlier)
        # By run and arguments: a model that plans again, or after a crash, makes new ids.
        mark = self._mark(tool, key if tool.key else digest([self._scope, run, call]))
        verify = verifier(tool, is_inline=is_inline)
        attempts = ToolAttempts(tool, invoke, self._classifier, is_inline=is_inline)
        try:
            with self._spending(tool, attempts, call_id) as (guard, holder):
                value = await execute(
                    attempts,
                    arguments,
                    guard=guard,
                    holder=holder,
                    way=Once(key, lease=self._lease, dump=jsonable) if key else None,
                    mark=mark,
                    verify=verify,
                    is_resolved=bool(earlier) and not repeats.is_in_doubt(call),
                )
        except passing:
            if mark is not None:
                await mark.end()
            raise
        except NotKept as kept:
            if attempts.count == 0:
                return report.failed(Situation.UNREADABLE, kept.because, error=kept, key=key)
            value = kept.value
        except Exception as error:  # noqa: BLE001 -- a model reads every error
            count = repeats.failed(call, now())
            if report.leaves_doubt(error, attempts):
                repeats.doubt(call, key, reads=self._reads_of(tool), now=now())
            return report.told(error, attempts, key=key, count=count, repeats=repeats)
        except BaseException:
            if key and attempts.is_in_doubt:  # cancelled: a repeat needs the same key
                repeats.doubt(call, key, reads=self._reads_of(tool), now=now())
            raise
        read = tool.name if tool.effects is Effects.READ else ""
        repeats.succeeded(call, read=read, began=began)
        return report.succeeded(value, attempts.count, key)

    def _mark(self, tool: ToolDefinition, operation: str) -> Unfinished | None:
        """The mark of an unsafe call; None for other calls."""
        if tool.effects is not Effects.UNSAFE:
            return None
        return Unfinished(store_for(self._store, self._policy.store), tool.target, operation)

    def _key(
        self, tool: ToolDefinition, arguments: dict[str, Any], call_id: str, run: str, earlier: str
    ) -> str:
        """The key of a call that must not be applied twice; empty for other calls.

        By the arguments that the tool names; else that of an equal call which may have been
        applied, because a model that plans again makes new ids; else by run and call id.
        """
        if tool.effects not in (Effects.KEYED, Effects.UNSAFE):
            return ""
        if tool.key:
            named = tool.operation(arguments)
            return f"tool-{digest(['arguments', self._scope, tool.name, named])}"
        if earlier:
            return earlier
        if call_id:
            return f"tool-{digest(['call', self._scope, run, tool.name, call_id])}"
        return new_key()

    @contextmanager
    def _spending(
        self, tool: ToolDefinition, attempts: ToolAttempts, call_id: str
    ) -> Iterator[tuple[Guard, Guard]]:
        """The guards of the tool, for a call that spends from the budget around it.

        A guard lets a call wait for a limit outside of any budget. Here such a wait is bounded by
        what is left, and booked when it has ended.
        """
        with task(budget=self._budget, metadata={"tool": tool.name, "call_id": call_id}) as own:
            now, began = own.clock.now, own.clock.now()

            def book() -> None:
                own.charge(max(now() - began - attempts.first_took - own.spent, 0.0))

            attempts.book = book
            try:
                yield self._guards_of(tool, max(own.budget_left(), 0.0))
            finally:
                book()

    def _guards_of(self, tool: ToolDefinition, left: float) -> tuple[Guard, Guard]:
        """The guard of the tool; and the one that holds keys of unsafe calls, and repeats none.

        A call may wait for `left` seconds.
        """
        found = self._guards.get(tool.name) if left == self._budget else None
        if found is None:
            policy = self._policy.but(in_place=left, patience=left)
            common: Any = {"store": self._store, "scope": self._scope}
            guard = Guard(
                tool.target,
                policy=policy,
                effects=tool.effects,
                verify=verifier(tool, is_inline=False),
                timeout=tool.timeouts,
                timeout_to=tool.timeout_to,
                classifier=self._classifier,
                listeners=self._listeners,
                **common,
            )
            nothing = replace(policy, name="unsafe tools", rules={})
            holder = Guard(
                tool.target, policy=nothing, breaker=False, gate=False, tokens=False, **common
            )
            found = guard, holder
            if left == self._budget:
                self._guards[tool.name] = found
        return found

    # For frameworks

    def to_anthropic(self) -> list[dict[str, Any]]:
        """The tools for ``messages.create(tools=…)``; `answer` runs what the model asks for."""
        return [
            {"name": each.name, "description": each.description, "input_schema": each.schema}
            for each in self.tools
        ]

    def to_openai_responses(self) -> list[dict[str, Any]]:
        """The tools for ``responses.create(tools=…)``; `answer` runs what the model asks for."""
        return [{"type": "function", **_function(each)} for each in self.tools]

    def to_openai_chat(self) -> list[dict[str, Any]]:
        """The tools for ``chat.completions.create(tools=…)``; `answer` runs them."""
        return [{"type": "function", "function": _function(each)} for each in self.tools]

    def to_pydantic_ai(self) -> list[Any]:
        """The tools for ``pydantic_ai.Agent(tools=…)``."""
        from .frameworks.pydantic_ai import tools_of

        return tools_of(self)

    def to_langchain(self) -> list[Any]:
        """The tools for ``langchain.agents.create_agent(tools=…)`` and LangGraph's ``ToolNode``."""
        from .frameworks.langchain import tools_of

        return tools_of(self)

    def to_openai_agents(self) -> list[Any]:
        """The tools for ``agents.Agent(tools=…)``."""
        from .frameworks.openai_agents import tools_of

        return tools_of(self)

    def to_mcp(self) -> list[Any]:
        """The tools for ``MCPServer(tools=…)``, ``FastMCP(tools=…)`` in mcp 1.x."""
        from .frameworks.mcp import tools_of

        return tools_of(self)

    def wrapping_pydantic_ai(self, declared: Mapping[str, ToolOptions]) -> Any:
        """A capability around tools that pydantic-ai has already, for ``Agent(capabilities=…)``.

        Args:
            declared: The options of each tool by its name; others go by the hints of their MCP
                server, else they are unsafe.
        """
        from .frameworks.pydantic_ai import capability

        return capability(self, declared)

    def wrapping_langchain(self, declared: Mapping[str, ToolOptions]) -> Any:
        """A middleware around tools that LangChain has already, for ``create_agent``.

        Args:
            declared: See `wrapping_pydantic_ai`.
        """
        from .frameworks.langchain import middleware

        return middleware(self, declared)

    # For the model's texts

    def reads_for(self, tool: ToolDefinition | None) -> str:
        """The tools to read with after a call of `tool` in doubt, for people and models."""
        if tool is not None and tool.reads_with:
            return tool.reads_with
        reads = [each.name for each in self.tools if each.effects is Effects.READ]
        near = self._reads_of(tool) if tool is not None else frozenset()
        named = [each for each in reads if not near or each in near]
        return " or ".join(named[:3]) or "a read of its state"

    def _reads_of(self, tool: ToolDefinition) -> frozenset[str]:
        """The tools that show whether a call of `tool` was applied; empty if any read may."""
        if tool.reads_with:
            return frozenset((tool.reads_with,))
        return frozenset(
            each.name
            for each in self.tools
            if each.effects is Effects.READ and each.target == tool.target
        )

    def other_than(self, tool: ToolDefinition | None) -> str:
        """What to use instead of `tool`; instead of one that does not exist, any."""
        if tool is not None:
            return tool.fallback or "another tool"
        return ", ".join(self._tools) or "none is registered"


def _function(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,  # a strict schema has no optional arguments
    }


def driven(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine of `work` returns, for a caller that is plain code."""
    import asyncio

    try:
        is_running = on_trio() or asyncio.get_running_loop() is not None
    except RuntimeError:
        is_running = False
    if not is_running:
        # Not asyncio.run: its handler of SIGINT would leave a plain function running after Ctrl-C.
        with asyncio.Runner() as runner:
            return runner.get_loop().run_until_complete(work())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:  # the caller's own loop stands still, as it asked
        return pool.submit(copy_context().run, lambda: asyncio.run(work())).result()

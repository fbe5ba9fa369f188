"""Each framework plays its own loop with real packages: a lost reply has one effect."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import anthropic
import httpx
import openai
import pytest

import mulligan

pytestmark = pytest.mark.real

ORDER = {"amount": 5}
DOUBT = "It is unknown whether it was applied."


def toolbox(server, **options):
    tools = mulligan.Toolbox(**options)

    async def post(amount, key="") -> str:
        headers = {"Idempotency-Key": key} if key else {}
        async with httpx.AsyncClient() as client:
            answer = await client.post(
                f"{server.url}/invoices", json={"amount": amount}, headers=headers
            )
        answer.raise_for_status()
        return f"invoice {answer.json()['id']}"

    @tools.tool(effects="unsafe")
    async def charge(amount: int) -> str:
        """Charge the customer."""
        return await post(amount)

    @tools.tool(effects="keyed", key="amount")
    async def pay(amount: int) -> str:
        """Pay the supplier."""
        context = mulligan.current()
        assert context is not None
        return await post(amount, context.key)

    @tools.tool(effects="read")
    def list_invoices() -> str:
        """List all invoices."""
        return httpx.get(f"{server.url}/invoices").text

    return tools


def called(tool, arguments=ORDER):
    """A script in which the model calls a tool, the service loses its reply, the model ends."""
    return f"POST /invoices -> lost,ok; call({tool}, {json.dumps(arguments)}), ok(finished)"


def posts(server):
    return [entry for entry in server.requests if entry.path == "/invoices"]


def check(server, tool, text):
    """One effect; the unsafe tool is not repeated, the keyed one is."""
    if tool == "charge":
        assert DOUBT in text
        assert "list_invoices" in text
        assert len(posts(server)) == 1
    else:
        assert text == "invoice 1"
        assert len(posts(server)) == 2
    assert server.totals.effects == 1


both = pytest.mark.parametrize("tool", ["charge", "pay"])


@both
def test_a_loop_with_anthropic(fault_server, virtual_clock, tool):
    tools = toolbox(fault_server)
    fault_server.set(called(tool))

    async def main():
        url, key = fault_server.url, fault_server.key()
        async with anthropic.AsyncAnthropic(base_url=url, api_key=key) as client:
            messages: Any = [{"role": "user", "content": "charge 5"}]
            while True:
                answer = await client.messages.create(
                    model="m", max_tokens=99, messages=messages, tools=tools.to_anthropic()
                )
                results = await tools.answer(answer)
                if not results:
                    return messages, answer
                messages += [
                    {"role": "assistant", "content": answer.content},
                    {"role": "user", "content": results},
                ]

    messages, answer = asyncio.run(main())
    assert answer.content[0].text == "finished"
    (result,) = messages[-1]["content"]
    assert result["is_error"] is (tool == "charge")
    check(fault_server, tool, result["content"])


@both
def test_a_loop_with_openai_responses(fault_server, virtual_clock, tool):
    tools = toolbox(fault_server)
    fault_server.set(called(tool))

    async def main():
        url, key = f"{fault_server.url}/v1", fault_server.key()
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            asked: Any = [{"role": "user", "content": "charge 5"}]
            while True:
                answer = await client.responses.create(
                    model="m", input=asked, tools=tools.to_openai_responses()
                )
                results = await tools.answer(answer)
                if not results:
                    return asked, answer
                asked += [each.model_dump() for each in answer.output] + results

    asked, answer = asyncio.run(main())
    assert answer.output_text == "finished"
    assert asked[-1]["type"] == "function_call_output"
    check(fault_server, tool, asked[-1]["output"])


@both
def test_a_loop_with_openai_chat(fault_server, virtual_clock, tool):
    tools = toolbox(fault_server)
    fault_server.set(called(tool))

    async def main():
        url, key = f"{fault_server.url}/v1", fault_server.key()
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            messages: Any = [{"role": "user", "content": "charge 5"}]
            while True:
                answer = await client.chat.completions.create(
                    model="m", messages=messages, tools=tools.to_openai_chat()
                )
                results = await tools.answer(answer)
                if not results:
                    return messages, answer
                messages += [answer.choices[0].message.model_dump(), *results]

    messages, answer = asyncio.run(main())
    assert answer.choices[0].message.content == "finished"
    check(fault_server, tool, messages[-1]["content"])


@both
def test_a_loop_with_openai_agents(fault_server, virtual_clock, tool):
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner

    tools = toolbox(fault_server)
    fault_server.set(called(tool))

    async def main():
        url, key = f"{fault_server.url}/v1", fault_server.key()
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            agent = Agent(
                name="a", model=OpenAIResponsesModel("m", client), tools=tools.to_openai_agents()
            )
            return await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))

    done = asyncio.run(main())
    assert done.final_output == "finished"
    (output,) = [item.output for item in done.new_items if item.type == "tool_call_output_item"]
    check(fault_server, tool, output)


def test_openai_agents_is_told_about_bad_arguments_and_unknown_tools(fault_server, virtual_clock):
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner

    tools = toolbox(fault_server)
    fault_server.set('call(charge, {"amount": "x"}), call(imagined, {}), ok(finished)')
    config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")

    async def main():
        url, key = f"{fault_server.url}/v1", fault_server.key()
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            agent = Agent(
                name="a", model=OpenAIResponsesModel("m", client), tools=tools.to_openai_agents()
            )
            return await Runner.run(agent, "go", run_config=config)

    done = asyncio.run(main())
    first, second = (item.output for item in done.new_items if item.type == "tool_call_output_item")
    assert "Correct amount and call charge again." in first
    assert "imagined" in second
    assert not posts(fault_server)


# pydantic-ai


def pydantic_ai_model(*calls):
    """A model that makes these calls, one a turn, and then ends."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    turns = count()

    def respond(messages, info):
        turn = next(turns)
        if turn < len(calls):
            name, arguments = calls[turn]
            return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"call_{turn}")])
        return ModelResponse(parts=[TextPart("finished")])

    return FunctionModel(respond)


def pydantic_ai_parts(done):
    return [
        part
        for message in done.all_messages()
        for part in message.parts
        if part.part_kind == "tool-return"
    ]


@both
def test_a_loop_with_pydantic_ai(fault_server, virtual_clock, tool):
    from pydantic_ai import Agent

    tools = toolbox(fault_server)
    fault_server.set("POST /invoices -> lost,ok")
    agent = Agent(pydantic_ai_model((tool, ORDER)), tools=tools.to_pydantic_ai())
    done = asyncio.run(agent.run("go"))
    assert done.output == "finished"
    (part,) = pydantic_ai_parts(done)
    assert part.outcome == ("failed" if tool == "charge" else "success")
    check(fault_server, tool, part.model_response_str(wrap_if_error=False))


def test_pydantic_ai_asks_the_model_for_arguments_that_can_be_corrected(
    fault_server, virtual_clock
):
    from pydantic_ai import Agent

    tools = toolbox(fault_server)
    agent = Agent(
        pydantic_ai_model(("pay", {"amount": "x"}), ("pay", ORDER)), tools=tools.to_pydantic_ai()
    )
    done = asyncio.run(agent.run("go"))
    first, second = pydantic_ai_parts(done)
    assert first.outcome == "retried"
    assert "Correct amount and call pay again." in first.content
    assert second.content == "invoice 1"


@pytest.mark.parametrize(("effects", "requests"), [("unsafe", 1), ("read", 2)])
def test_tools_that_pydantic_ai_has_already_are_wrapped(
    fault_server, virtual_clock, effects, requests
):
    from pydantic_ai import Agent, ModelRetry

    fault_server.set("POST /invoices -> lost,ok")
    box = mulligan.Toolbox()
    agent = Agent(
        pydantic_ai_model(("create", ORDER), ("picky", {})),
        capabilities=[box.wrapping_pydantic_ai({"create": {"effects": effects}})],
    )

    @agent.tool_plain
    async def create(amount: int) -> str:
        async with httpx.AsyncClient() as client:
            return (await client.post(f"{fault_server.url}/invoices", json={"a": amount})).text

    @agent.tool_plain
    def picky() -> str:
        raise ModelRetry("not like this")  # the framework's own business

    done = asyncio.run(agent.run("go"))
    assert done.output == "finished"
    first, second = pydantic_ai_parts(done)
    assert len(posts(fault_server)) == requests
    assert (DOUBT in str(first.content)) == (effects == "unsafe")
    assert second.outcome == "retried"
    assert second.content == "not like this"


# LangChain and LangGraph


def langchain_model(*calls):
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    turns = count()

    class Scripted(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **kwargs):
            return self

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            turn = next(turns)
            message = AIMessage("finished")
            if turn < len(calls):
                name, arguments = calls[turn]
                call = {"name": name, "args": arguments, "id": f"call_{turn}", "type": "tool_call"}
                message = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=message)])

    return Scripted()


@both
@pytest.mark.parametrize("is_async", [True, False])
def test_a_loop_with_langchain(fault_server, virtual_clock, tool, is_async):
    from langchain.agents import create_agent

    tools = toolbox(fault_server)
    fault_server.set("POST /invoices -> lost,ok")
    agent = create_agent(langchain_model((tool, ORDER)), tools.to_langchain())
    asked: Any = {"messages": [("user", "go")]}
    done = asyncio.run(agent.ainvoke(asked)) if is_async else agent.invoke(asked)
    assert done["messages"][-1].content == "finished"
    message = done["messages"][-2]
    assert message.status == ("error" if tool == "charge" else "success")
    check(fault_server, tool, message.content)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(("effects", "requests"), [("unsafe", 1), ("read", 2), ("keyed", 2)])
def test_tools_that_langchain_has_already_are_wrapped(
    fault_server, virtual_clock, effects, requests, is_async
):
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    fault_server.set("POST /invoices -> lost,ok")
    box = mulligan.Toolbox()

    @tool
    def create(amount: int) -> str:
        """Create an invoice."""
        return httpx.post(f"{fault_server.url}/invoices", json={"a": amount}).text

    agent = create_agent(
        langchain_model(("create", ORDER)),
        [create],
        middleware=[box.wrapping_langchain({"create": {"effects": effects}})],
    )
    asked: Any = {"messages": [("user", "go")]}
    done = asyncio.run(agent.ainvoke(asked)) if is_async else agent.invoke(asked)
    message = done["messages"][-2]
    assert len(posts(fault_server)) == requests
    assert message.status == ("error" if effects == "unsafe" else "success")
    assert (DOUBT in message.content) == (effects == "unsafe")


def test_an_interrupt_of_langgraph_passes_and_the_call_is_made_after_it(virtual_clock):
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    box, approvals = mulligan.Toolbox(), []

    @tool
    def charge(amount: int) -> str:
        """Charge, if a person approves."""
        approvals.append(interrupt("may I?"))
        return "charged"

    agent = create_agent(
        langchain_model(("charge", ORDER)),
        [charge],
        middleware=[box.wrapping_langchain({})],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "t1"}}
    asked: Any = {"messages": [("user", "go")]}
    assert agent.invoke(asked, config)["__interrupt__"]
    done = agent.invoke(Command(resume="yes"), config)
    assert done["messages"][-2].content == "charged"
    assert approvals == ["yes"]


def test_a_thread_of_langgraph_makes_the_key(virtual_clock, fault_server):
    from langchain_core.messages import ToolMessage

    box, keys = mulligan.Toolbox(), []

    @box.tool(effects="keyed")
    def pay() -> str:
        context = mulligan.current()
        keys.append(context and context.key)
        return "paid"

    (tool,) = box.to_langchain()
    for thread, call_id in [("a", "1"), ("a", "1"), ("b", "1"), ("a", "2")]:
        call = {"type": "tool_call", "name": "pay", "args": {}, "id": call_id}
        message = tool.invoke(call, {"configurable": {"thread_id": thread}})
        assert isinstance(message, ToolMessage)
        assert (message.content, message.tool_call_id) == ("paid", call_id)
    assert len(keys) == len(set(keys)) == 3
    assert tool.invoke({}) == "paid"


# MCP


@both
def test_a_loop_with_an_mcp_server(fault_server, virtual_clock, tool):
    from mcp import Client
    from mcp.server import MCPServer

    tools = toolbox(fault_server)
    fault_server.set("POST /invoices -> lost,ok")
    server = MCPServer("shop", tools=tools.to_mcp())

    async def main():
        async with Client(server) as client:
            listed = (await client.list_tools()).tools
            bad = await client.call_tool(tool, {"amount": "x"})
            first = await client.call_tool(tool, ORDER)
            return listed, bad, first

    listed, bad, first = asyncio.run(main())
    hints = {each.name: each.annotations for each in listed}
    assert hints["list_invoices"].read_only_hint is True
    assert hints["charge"].idempotent_hint is False
    assert listed[0].input_schema == tools.tools[0].schema
    assert bad.is_error
    assert "Correct amount and call" in bad.content[0].text
    assert first.is_error is (tool == "charge")
    check(fault_server, tool, first.content[0].text)


def test_two_mcp_sessions_with_equal_request_ids_make_two_charges(fault_server, virtual_clock):
    from mcp import Client
    from mcp.server import MCPServer

    tools = mulligan.Toolbox()
    keys = []

    @tools.tool(effects="keyed")
    def pay(amount: int) -> str:
        context = mulligan.current()
        keys.append(context and context.key)
        return "paid"

    server = MCPServer("shop", tools=tools.to_mcp())

    async def main():
        for _ in range(2):
            async with Client(server) as client:
                await client.call_tool("pay", ORDER)

    asyncio.run(main())
    assert len(set(keys)) == 2


def test_a_failure_is_not_lost_where_an_mcp_tool_is_asked_for_its_value():
    tools = mulligan.Toolbox()

    @tools.tool(effects="read")
    def look() -> str:
        raise LookupError("no such order")

    (made,) = tools.to_mcp()
    answer = asyncio.run(made.run({}, None))
    assert answer.model_dump(by_alias=True)["isError"] is True
    assert "no such order" in answer.content[0].text


def test_effects_are_read_from_hints_of_both_versions_and_written():
    from mcp.types import ToolAnnotations

    from mulligan.core.failure import Effects
    from mulligan.tools.frameworks.hints import effects_of, hints_of

    for effects, back in [
        (Effects.READ, Effects.READ),
        (Effects.IDEMPOTENT, Effects.IDEMPOTENT),
        (Effects.KEYED, Effects.UNSAFE),
        (Effects.UNSAFE, Effects.UNSAFE),
    ]:
        wire = hints_of(effects)
        assert effects_of(wire) is back
        assert effects_of(ToolAnnotations.model_validate(wire)) is back
    assert effects_of({"read_only_hint": True}) is Effects.READ
    assert effects_of(None) is Effects.UNSAFE


def test_a_response_of_no_known_shape_is_refused():
    with pytest.raises(mulligan.SettingError, match=r"^answer needs a Message .*str$"):
        asyncio.run(mulligan.Toolbox().answer("hello"))

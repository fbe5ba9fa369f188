"""The shape of a result in each framework, checked by the real packages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.testing import status_error
from mulligan.tools.results import LARGEST, failure_text


@pytest.fixture
def results(virtual_clock):
    tools = mulligan.Toolbox()

    @tools.tool(effects="read")
    def find(order: int) -> dict[str, int]:
        if order == 7:
            return {"order": 7}
        raise status_error(403 if order == 8 else 400, "no")

    return {
        "ok": tools.run_sync("find", {"order": 7}, call_id="c1"),
        "stop": tools.run_sync("find", {"order": 8}, call_id="c2"),
        "fix": tools.run_sync("find", {"order": 9}, call_id="c3"),
    }


def accepted(kind, value):
    """`value`, as the SDK's own type reads it."""
    return pydantic.TypeAdapter(kind).validate_python(value)


def test_anthropic_takes_it(results):
    from anthropic.types import ToolResultBlockParam

    for name, result in results.items():
        block = accepted(ToolResultBlockParam, result.to_anthropic())
        assert block["tool_use_id"] == result.call_id
        assert block["is_error"] is (name != "ok")
        assert block["content"] == result.text


def test_openai_takes_it(results):
    from openai.types.chat import ChatCompletionToolMessageParam
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    for result in results.values():
        output = accepted(FunctionCallOutput, result.to_openai_responses())
        message = accepted(ChatCompletionToolMessageParam, result.to_openai_chat())
        assert output["output"] == message["content"] == result.text
        assert output["call_id"] == message["tool_call_id"] == result.call_id


def test_mcp_takes_it(results):
    from mcp.types import CallToolResult

    for name, result in results.items():
        made = result.to_mcp()
        wire = json.loads(made.model_dump_json(by_alias=True))
        assert wire["isError"] is (name != "ok")
        back = CallToolResult.model_validate(wire)
        block: Any = back.content[0]
        assert (back.is_error, block.text) == (name != "ok", result.text)


def test_langchain_takes_it(results):
    from langchain_core.messages import ToolMessage

    for name, result in results.items():
        message = ToolMessage.model_validate_json(result.to_langchain().model_dump_json())
        assert (message.content, message.tool_call_id) == (result.text, result.call_id)
        assert message.status == ("success" if name == "ok" else "error")


def test_pydantic_ai_takes_it(results):
    from pydantic_ai import ModelRetry, ToolFailed

    assert results["ok"].to_pydantic_ai() == {"order": 7}
    with pytest.raises(ToolFailed) as stopped:
        results["stop"].to_pydantic_ai()
    assert stopped.value.message == results["stop"].text
    with pytest.raises(ModelRetry) as corrected:
        results["fix"].to_pydantic_ai()
    assert corrected.value.message == results["fix"].text


def test_the_definitions_are_what_the_sdks_take(virtual_clock):
    from anthropic.types import ToolParam
    from openai.types.chat import ChatCompletionToolParam
    from openai.types.responses import FunctionToolParam

    tools = mulligan.Toolbox()

    @tools.tool(effects="read")
    def find(order: int, deep: bool = False) -> str:  # noqa: FBT001, FBT002 -- a model names it
        """Find an order."""
        return f"{order} {deep}"

    for kind, made in [
        (ToolParam, tools.to_anthropic()),
        (FunctionToolParam, tools.to_openai_responses()),
        (ChatCompletionToolParam, tools.to_openai_chat()),
    ]:
        (definition,) = made
        assert accepted(kind, definition)
        assert "find" in str(definition)


text = st.text(max_size=2000)


@given(
    headline=text,
    said=text,
    arguments=text,
    fields=st.lists(st.tuples(text, text), max_size=5),
    tried=st.sampled_from(["", "5 attempts, 29.2s of waiting; the time for retries is used up"]),
    advice=st.text(max_size=600),
)
def test_no_failure_is_longer_than_a_kilobyte(headline, said, arguments, fields, tried, advice):
    shown = failure_text(
        headline=headline,
        said=said,
        arguments=arguments,
        fields=fields,
        tried=tried,
        advice=advice,
    )
    assert len(shown.encode()) <= LARGEST


@pytest.mark.real
def test_tools_load_no_framework_and_pydantic_only_for_a_schema():
    script = (
        "import sys, mulligan\n"
        "tools = mulligan.Toolbox()\n"
        "third = {'pydantic'} & set(sys.modules)\n"
        "@tools.tool(effects='read')\n"
        "def find(order: int) -> int: return order\n"
        "assert tools.run_sync('find', {'order': 7}).text == '7'\n"
        "print(third, {'pydantic_ai','langchain','langchain_core','langgraph','agents','mcp',"
        "'anthropic','openai'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "set() set()\n"

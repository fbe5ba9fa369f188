from __future__ import annotations

import pytest

from mulligan.faults.fault_names import parse_fault
from mulligan.faults.toolcall import tool_call
from mulligan.faults.vendors.base import ClientRequest, Tool


def offers(name: str, required: list[str], **properties: str) -> ClientRequest:
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    schema = {"type": "object", "properties": kinds, "required": required}
    return ClientRequest(tools=(Tool(name="other"), Tool(name=name, schema=schema)))


@pytest.mark.parametrize(
    ("asked", "name", "arguments"),
    [
        (offers("Bash", ["command"], command="string", timeout="number"), "Bash",
         {"command": "echo hi, you"}),
        (offers("shell", ["command"], command="array", workdir="string"), "shell",
         {"command": ["bash", "-lc", "echo hi, you"]}),
        (offers("exec_command", ["cmd"], cmd="string"), "exec_command", {"cmd": "echo hi, you"}),
        (offers("bash", ["command", "description"], command="string", description="string"),
         "bash", {"command": "echo hi, you", "description": "asked by the fault server"}),
        (ClientRequest(), "bash", {"command": "echo hi, you"}),
    ],
)  # fmt: skip
def test_a_shell_command_fits_the_tool_that_the_program_offers(asked, name, arguments):
    call = tool_call(parse_fault("shell", "echo hi, you"), asked)
    assert (call.name, call.arguments) == (name, arguments)


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        (offers("Write", ["file_path", "content"], file_path="string", content="string"),
         {"file_path": "a.txt", "content": "hello, world"}),
        (offers("write", ["filePath", "content"], filePath="string", content="string"),
         {"filePath": "a.txt", "content": "hello, world"}),
        (offers("create", ["path", "file_text"], path="string", file_text="string"),
         {"path": "a.txt", "file_text": "hello, world"}),
    ],
)  # fmt: skip
def test_a_write_fits_the_tool_that_the_program_offers(asked, arguments):
    assert tool_call(parse_fault("write", "a.txt, hello, world"), asked).arguments == arguments


def test_what_else_is_required_gets_a_bland_value_of_its_type():
    asked = offers(
        "bash",
        ["command", "timeout", "flag", "list", "map"],
        command="string",
        timeout="integer",
        flag="boolean",
        list="array",
        map="object",
    )
    assert tool_call(parse_fault("shell", "true"), asked).arguments == {
        "command": "true",
        "timeout": 30_000,
        "flag": False,
        "list": [],
        "map": {},
    }


def test_any_tool_can_be_asked_for_by_name():
    call = tool_call(parse_fault("call", 'search, {"q": "a, b"}'), ClientRequest())
    assert (call.name, call.arguments) == ("search", {"q": "a, b"})


def test_a_program_without_a_tool_for_writing_writes_by_its_shell():
    asked = offers("exec_command", ["cmd"], cmd="string")
    call = tool_call(parse_fault("write", "a b.txt, it's"), asked)
    assert call.arguments == {"cmd": "printf %s 'it'\"'\"'s' > 'a b.txt'"}


def test_a_tool_that_takes_code_is_given_code():
    call = tool_call(
        parse_fault("shell", "ls"), ClientRequest(tools=(Tool(name="exec", is_free=True),))
    )
    assert call.text == 'text(await tools.exec_command({"cmd": "ls"}))'

"""The tools of an agent with a scripted model, against the server in CELLBLOCK_URL."""

from __future__ import annotations

import os
from typing import Any

import cellblock.aio
import pytest
from pydantic_ai import Agent, BinaryContent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelRequest, RetryPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from pydantic_ai_cellblock import CellblockToolset, CellblockWorkspace

URL, KEY = os.environ["CELLBLOCK_URL"], os.environ.get("CELLBLOCK_KEY")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def scripted(*calls: tuple[str, dict[str, Any]]) -> FunctionModel:
    """A model that makes these calls, one a step, and then ends."""

    def step(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done < len(calls):
            name, arguments = calls[done]
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        return ModelResponse(parts=[TextPart("done")])

    return FunctionModel(step)


async def returned(toolset: CellblockToolset, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """What the model got for each of its calls."""
    result = await Agent(scripted(*calls), toolsets=[toolset]).run("Go.")
    assert result.output == "done"
    requests = [message for message in result.all_messages() if isinstance(message, ModelRequest)]
    parts = [part for message in requests for part in message.parts if isinstance(part, ToolReturnPart | RetryPromptPart)]
    return [part.content for part in parts]


def toolset(**arguments: Any) -> CellblockToolset:
    return CellblockToolset(URL, key=KEY, **arguments)


async def test_variables_and_files_persist_from_call_to_call_of_a_run() -> None:
    outputs = await returned(
        toolset(),
        ("run_python", {"code": "x = 20\nprint('set')"}),
        ("run_python", {"code": "x + 22"}),
        ("write_file", {"path": "notes/a.txt", "content": "grün"}),
        ("read_file", {"path": "/workspace/notes/a.txt"}),
        ("run_command", {"command": "cat notes/a.txt; echo; echo no >&2; exit 3"}),
        ("run_python", {"code": "open('notes/a.txt').read()"}),
    )
    assert outputs[:-1] == ["set", "42", "wrote 5 bytes to notes/a.txt", "grün", "grün\nno\n[exit code 3]"]
    assert outputs[-1] == "grün\nfiles: /workspace/notes/a.txt (5 bytes)"


async def test_errors_reach_the_model_in_words_that_it_can_act_on() -> None:
    outputs = await returned(
        toolset(timeout=2),
        ("run_python", {"code": "print('before')\n1 / 0"}),
        ("run_python", {"code": "while True: pass", "timeout": 1}),
        ("run_command", {"command": "sleep 30"}),
        ("read_file", {"path": "missing.txt"}),
        ("run_command", {"command": "printf '\\377' > binary"}),
        ("read_file", {"path": "binary"}),
    )
    assert outputs[0].startswith("before\nTraceback")
    assert outputs[0].endswith("ZeroDivisionError: division by zero")
    assert "the cell ran longer than its limit of 1 s" in outputs[1]
    assert outputs[2] == "[killed after 2 seconds]"
    assert "No such file or directory: 'missing.txt'" in outputs[3]
    assert outputs[4] == "[exit code 0]"
    assert "not UTF-8 text" in outputs[5]


async def test_tables_are_text_and_figures_are_pictures() -> None:
    [table, figure, many] = await returned(
        toolset(),
        ("run_python", {"code": "import pandas as pd\npd.DataFrame({'a': [1, None], 'b': ['x', 'y']})"}),
        ("run_python", {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"}),
        ("run_python", {"code": "print('z' * 100_000)"}),
    )
    assert table == "table of 2 rows\na,b\n1.0,x\n,y"
    assert isinstance(figure[1], BinaryContent)
    assert figure[1].data.startswith(b"\x89PNG")
    assert len(many) < 21_000
    assert "characters left out" in many


async def test_each_run_has_a_sandbox_that_ends_with_it() -> None:
    tools = toolset()
    code = "kept = globals().get('kept', 0) + 1\nkept"
    assert await returned(tools, ("run_python", {"code": code})) == ["1"]
    assert await returned(tools, ("run_python", {"code": code})) == ["1"]


async def test_runs_share_a_session_that_they_are_given() -> None:
    async with cellblock.aio.Session(URL, key=KEY) as session:
        tools = toolset(session=session)
        assert await returned(tools, ("run_python", {"code": "kept = 1"})) == ["(no output)"]
        assert await returned(tools, ("run_python", {"code": "kept"})) == ["1"]
        assert await session.alive()


async def test_no_session_starts_unless_a_tool_is_called() -> None:
    tools = CellblockToolset("http://127.0.0.1:9", key=KEY)
    result = await Agent(TestModel(call_tools=[]), toolsets=[tools]).run("Go.")
    assert result.output


async def test_the_schemas_describe_every_argument() -> None:
    model = TestModel(call_tools=[])
    await Agent(model, toolsets=[toolset()]).run("Go.")
    assert model.last_model_request_parameters is not None
    tools = {tool.name: tool.parameters_json_schema for tool in model.last_model_request_parameters.function_tools}
    assert set(tools) == {"run_python", "run_command", "read_file", "write_file"}
    for schema in tools.values():
        assert all("description" in argument for argument in schema["properties"].values())


async def test_an_agents_tools_use_its_workspace() -> None:
    workspace = CellblockWorkspace(URL, key=KEY)
    agent = Agent[None, str](scripted(("shout", {})))

    @agent.tool
    async def shout(ctx: RunContext[None]) -> str:
        await ctx.workspace.write_text("a.txt", "hello")
        return (await ctx.workspace.run("tr a-z A-Z < a.txt", shell=True)).stdout

    try:
        result = await agent.run("Go.", workspace=workspace)
        assert result.output == "done"
        assert "HELLO" in result.all_messages_json().decode()
        attached = CellblockWorkspace(URL, key=KEY, ref=workspace.ref)
        assert (await attached.run("cat a.txt", shell=True)).stdout == "hello"
    finally:
        await workspace.destroy()

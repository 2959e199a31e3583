"""What a client does with a server, step by step. Each function is one thing that has to work."""

import asyncio
import base64
from typing import Any

from mcp import Client, MCPError
from mcp_types import BlobResourceContents, CallToolResult, TextContent, TextResourceContents

from place import PATIENCE

PNG = b"\x89PNG\r\n\x1a\n"
PARQUET = b"PAR1"


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured content of a call that succeeds. The client itself validates it against the tool's schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return result.structured_content


async def value(client: Client, session: str, code: str) -> Any:
    ran = await done(client, "run_python", code=code, session_id=session)
    return ran["outputs"][0]["value"]


async def blob(client: Client, uri: str) -> bytes:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, BlobResourceContents), content
    return base64.b64decode(content.blob)


async def tools_have_schemas_and_say_what_they_change(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"run_python", "create_session", "upload_file", "download_file", "close_session"} <= set(tools), set(tools)
    for tool in tools.values():
        assert tool.input_schema["type"] == "object", tool
        assert tool.output_schema is not None, tool
        assert tool.annotations is not None, tool
        assert tool.annotations.read_only_hint is not None, tool
    assert tools["list_sessions"].annotations.read_only_hint is True
    assert tools["run_python"].annotations.read_only_hint is False


async def a_table_is_structured_content_and_text_with_the_uri_of_all_of_it(client: Client) -> None:
    code = "import pandas as pd\nprint('printed')\nframe = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\nframe"
    result = await client.call_tool("run_python", {"code": code})
    ran = result.structured_content
    assert not result.is_error, text(result)
    assert ran["outcome"] == "completed"
    assert ran["stdout"] == "printed\n"
    (table,) = ran["outputs"]
    assert (table["kind"], table["rows"]) == ("dataframe", 2), table
    assert [column["name"] for column in table["columns"]] == ["a", "b"], table
    assert "printed" in text(result)
    assert ran["session_id"] in text(result)
    assert [block.type for block in result.content] == ["text"], result
    uri = table["resources"][0]["uri"]
    assert uri in text(result)
    whole = await blob(client, uri)
    assert whole.startswith(PARQUET)
    assert whole.endswith(PARQUET)
    assert uri in {str(resource.uri) for resource in (await client.list_resources()).resources}
    await done(client, "close_session", session_id=ran["session_id"])


async def a_chart_is_named_and_read_as_a_picture(client: Client) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('three')\nNone"
    result = await client.call_tool("run_python", {"code": code})
    # This client does not say that it shows images.
    assert [block.type for block in result.content] == ["text"], result
    resources = result.structured_content["outputs"][0]["resources"]
    (picture,) = (link for link in resources if link["media_type"] == "image/png")
    assert picture["name"] in text(result)
    assert (await blob(client, picture["uri"])).startswith(PNG)
    await done(client, "close_session", session_id=result.structured_content["session_id"])


async def files_come_and_go(client: Client) -> None:
    session = (await done(client, "create_session"))["session_id"]
    await done(client, "upload_file", session_id=session, path="sales.csv", content="region,revenue\nnorth,10.5\n")
    total = "import pandas as pd\ntable = pd.read_csv('sales.csv')\ntable.to_csv('out.csv', index=False)\nfloat(table.iloc[0, 1])"
    result = await client.call_tool("run_python", {"code": total, "session_id": session})
    assert result.structured_content["outputs"][0]["value"] == 10.5
    link = next(file for file in result.structured_content["files"] if file["name"] == "out.csv")
    assert (link["name"], link["media_type"]) == ("out.csv", "text/csv"), link
    assert link["uri"] in text(result)
    (content,) = (await client.read_resource(link["uri"])).contents
    assert isinstance(content, TextResourceContents), content
    assert content.text == "region,revenue\nnorth,10.5\n"
    listed = await done(client, "list_files", session_id=session)
    assert {"sales.csv", "out.csv"} <= {file["path"].rpartition("/")[2] for file in listed["files"]}, listed
    fetched = await done(client, "download_file", session_id=session, path="out.csv")
    assert fetched["text"] == content.text
    await done(client, "close_session", session_id=session)


async def code_that_raises_is_answered_with_its_line_and_the_session_goes_on(client: Client) -> None:
    session = (await done(client, "create_session"))["session_id"]
    result = await client.call_tool("run_python", {"code": "kept = 42\nkept.nothing", "session_id": session})
    assert not result.is_error
    assert result.structured_content["outcome"] == "raised"
    assert text(result).startswith("AttributeError: ")
    assert result.structured_content["error"]["line"] == 2
    assert "AttributeError" in text(result)
    assert await value(client, session, "kept") == 42
    await done(client, "close_session", session_id=session)


async def a_wrong_session_or_argument_is_an_error_that_a_model_can_repair(client: Client) -> None:
    unknown = await client.call_tool("run_python", {"code": "1", "session_id": "nobodys"})
    assert unknown.is_error
    assert "there is no session" in text(unknown)
    wrong = await client.call_tool("run_python", {"cod": "1"})
    assert wrong.is_error
    assert "cod" in text(wrong)


async def what_is_not_there_is_an_error_of_the_protocol(client: Client) -> None:
    for asked in (
        client.call_tool("no_such_tool", {}),
        client.read_resource("cellblock://artifacts/none"),
        client.get_prompt("none"),
    ):
        try:
            await asked
        except MCPError as error:
            assert error.code in (-32602, -32002), error
        else:
            raise AssertionError(f"it was answered: {asked}")


async def what_is_printed_is_told_while_the_code_runs_and_a_cancelled_call_stops_it(client: Client) -> None:
    session = (await done(client, "create_session"))["session_id"]
    assert await value(client, session, "kept = 42\nkept") == 42
    heard: list[tuple[float, str]] = []
    began = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))
        if "on" in heard[-1][1]:
            began.set()

    code = "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.01)"
    call = asyncio.create_task(
        client.call_tool("run_python", {"code": code, "session_id": session, "timeout_seconds": 300}, progress_callback=hear)
    )
    await asyncio.wait_for(began.wait(), PATIENCE)
    assert not call.done()
    call.cancel()
    await asyncio.wait([call], timeout=PATIENCE)
    assert call.cancelled()
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard}), heard
    # It waits for the turn of the one that was cancelled, which would be five minutes.
    assert await asyncio.wait_for(value(client, session, "kept"), PATIENCE) == 42
    await done(client, "close_session", session_id=session)


async def sessions_run_side_by_side_and_share_nothing(client: Client) -> None:
    first, second = [(await done(client, "create_session"))["session_id"] for _ in range(2)]
    code = "import time; time.sleep(0.2); mine = '{}'; mine"
    said = await asyncio.gather(value(client, first, code.format("first")), value(client, second, code.format("second")))
    assert said == ["first", "second"]
    lacks = await client.call_tool("run_python", {"code": "undefined_here", "session_id": second})
    assert "NameError" in text(lacks)
    for session in (first, second):
        await done(client, "close_session", session_id=session)
    assert (await done(client, "list_sessions"))["sessions"] == []


async def prompts_name_the_session_that_they_are_for(client: Client) -> None:
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert "interpreter" in prompts, prompts
    session = (await done(client, "create_session"))["session_id"]
    prompt = await client.get_prompt("interpreter", {"session_id": session})
    said = prompt.messages[0].content
    assert isinstance(said, TextContent), said
    assert session in said.text
    await done(client, "close_session", session_id=session)


async def templates_say_how_resources_are_named(client: Client) -> None:
    listed = await client.list_resource_templates()
    templates = {template.uri_template for template in listed.resource_templates}
    assert "cellblock://artifacts/{sha256}" in templates, templates


ALL = (
    tools_have_schemas_and_say_what_they_change,
    a_table_is_structured_content_and_text_with_the_uri_of_all_of_it,
    a_chart_is_named_and_read_as_a_picture,
    files_come_and_go,
    code_that_raises_is_answered_with_its_line_and_the_session_goes_on,
    a_wrong_session_or_argument_is_an_error_that_a_model_can_repair,
    what_is_not_there_is_an_error_of_the_protocol,
    what_is_printed_is_told_while_the_code_runs_and_a_cancelled_call_stops_it,
    sessions_run_side_by_side_and_share_nothing,
    prompts_name_the_session_that_they_are_for,
    templates_say_how_resources_are_named,
)

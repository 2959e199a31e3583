"""Uses Cellblock's MCP server with the protocol's own Python client, in both revisions.

`python client.py COMMAND …` starts the server over stdio, `python client.py URL` reaches it over HTTP.
"""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

REVISIONS = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def server() -> StdioServerParameters | str:
    """What the command line names."""
    target = sys.argv[1:]
    if target[0].startswith("http"):
        return target[0]
    return StdioServerParameters(
        command=target[0], args=target[1:], env=dict(os.environ)
    )


async def check(mode: str) -> None:
    """Goes through tools, progress, resources and prompts."""
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async with Client(server(), mode=mode) as client:
        assert client.protocol_version == REVISIONS[mode], client.protocol_version
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"run_python", "create_session", "upload_file"} <= tools, tools

        code = "import pandas as pd\nprint('heard', flush=True)\ntable = pd.DataFrame({'a': [1, 2]})\ntable"
        first = await client.call_tool(
            "run_python", {"code": code}, progress_callback=hear
        )
        assert not first.is_error, first
        assert any("heard" in message for message in heard), heard
        session = first.structured_content["session"]
        links = [block for block in first.content if block.type == "resource_link"]
        read = await client.read_resource(str(links[0].uri))
        assert read.contents[0].blob.startswith("UEFSM"), "a Parquet file"

        plot = "import matplotlib.pyplot as plt\nplt.plot(table.a)\nNone"
        second = await client.call_tool(
            "run_python", {"code": plot, "session": session}
        )
        assert any(block.type == "image" for block in second.content), second

        third = await client.call_tool(
            "run_python", {"code": "x = 1\ntable.b", "session": session}
        )
        assert third.is_error, third
        assert third.structured_content["error"]["line"] == 2, third

        prompt = await client.get_prompt("interpreter", {"session": session})
        assert session in prompt.messages[0].content.text
        closed = await client.call_tool("close_session", {"session": session})
        assert not closed.is_error, closed
    print(f"{REVISIONS[mode]}: ok")


async def main() -> None:
    """Both revisions, one after the other."""
    for mode in REVISIONS:
        await check(mode)


asyncio.run(main())

"""A deep agent with a scripted model, and the rules of its sandbox that LangChain does not test. Against the server in CELLBLOCK_URL."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import cellblock
import pytest
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from langchain_cellblock import CellblockSandbox

URL, KEY = os.environ["CELLBLOCK_URL"], os.environ.get("CELLBLOCK_KEY")


class Scripted(GenericFakeChatModel):
    """A model that says what it was given, with whatever tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Scripted:
        return self


@pytest.fixture
def sandbox() -> Iterator[CellblockSandbox]:
    with CellblockSandbox(URL, key=KEY) as sandbox:
        yield sandbox


def call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def test_an_agents_files_and_commands_are_in_the_sandbox(sandbox: CellblockSandbox) -> None:
    script = [
        call("write_file", file_path="/workspace/app.py", content="print(6 * 7)"),
        call("execute", command="python3 app.py; echo no >&2; exit 3"),
        call("grep", pattern="6 * 7", path="/workspace"),
        AIMessage("done"),
    ]
    agent = create_deep_agent(model=Scripted(messages=iter(script)), backend=sandbox)
    state = agent.invoke({"messages": [{"role": "user", "content": "Go."}]})
    outputs = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert "42\nno\n" in outputs[1]
    assert "exit code 3" in outputs[1]
    assert "/workspace/app.py" in outputs[2]
    assert state["messages"][-1].text == "done"
    assert sandbox.session.read("app.py") == b"print(6 * 7)"


def test_a_command_that_exceeds_its_timeout_exits_with_124_and_says_why(sandbox: CellblockSandbox) -> None:
    done = sandbox.execute("echo begun; sleep 60", timeout=1)
    assert done.exit_code == 124
    assert done.output.startswith("begun\nthe command was killed after 1 seconds")
    assert sandbox.execute("true", timeout=0).exit_code == 0


def test_output_over_the_limit_is_cut_and_marked() -> None:
    with CellblockSandbox(URL, key=KEY, max_output=100_000) as sandbox:
        done = sandbox.execute("head -c 300000 /dev/zero | tr '\\0' x")
        assert (len(done.output), done.truncated, done.exit_code) == (100_000, True, 0)


async def test_a_canceled_task_kills_its_command(sandbox: CellblockSandbox) -> None:
    task = asyncio.create_task(sandbox.aexecute("touch begun; sleep 8989"))
    while (await sandbox.aexecute("test -e begun")).exit_code:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await sandbox.aexecute("ps ax | grep -c '[s]leep 8989'")).output == "0\n"


def test_a_server_in_the_background_answers_later_commands() -> None:
    with CellblockSandbox(URL, key=KEY, network="loopback") as sandbox:
        sandbox.execute("echo hello > index.html; python3 -m http.server 8123 >/dev/null 2>&1 &")
        fetch = "python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:8123/').read().decode(), end='')\""
        until = time.monotonic() + 20
        while (done := sandbox.execute(fetch)).exit_code:
            assert time.monotonic() < until, done.output
            time.sleep(0.2)
        assert done.output == "hello\n"


def test_a_sandbox_starts_with_its_first_use_and_ends_when_it_is_closed() -> None:
    unused = CellblockSandbox("http://127.0.0.1:9", key=KEY)
    unused.close()
    sandbox = CellblockSandbox(URL, key=KEY)
    first = sandbox.id
    assert sandbox.id == first
    session = sandbox.session
    assert session.run("x = 41").ok
    assert session.run("x + 1").value == 42
    sandbox.close()
    with pytest.raises(cellblock.ServerError, match="session"):
        cellblock.Session(URL, key=KEY, id=first)
    assert sandbox.id != first
    sandbox.close()


def test_a_session_that_was_given_stays_open() -> None:
    with cellblock.Session(URL, key=KEY) as session:
        with CellblockSandbox(session=session) as sandbox:
            assert sandbox.execute("echo hi").output == "hi\n"
        assert session.alive

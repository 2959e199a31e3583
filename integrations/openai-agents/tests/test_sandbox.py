"""A sandbox of the OpenAI Agents SDK on the server in CELLBLOCK_URL, used as the SDK uses it.

The SDK has no suite for sandboxes of others, so these tests hold what the documentation of its base classes says.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cellblock
import pytest
from agents import Runner, ToolCallOutputItem
from agents.run import RunConfig
from agents.sandbox import (
    ExecTimeoutError,
    ExecTransportError,
    LocalSnapshotSpec,
    Manifest,
    SandboxAgent,
    SandboxRunConfig,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.entries import BaseEntry, Dir, File
from agents.sandbox.errors import InvalidManifestPathError
from agents.sandbox.manifest import Environment
from agents.sandbox.session import SandboxSession
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseCustomToolCall

from openai_agents_cellblock import CellblockSandboxClient, CellblockSandboxClientOptions, CellblockSandboxSessionState

URL, KEY = os.environ["CELLBLOCK_URL"], os.environ.get("CELLBLOCK_KEY")

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def client() -> CellblockSandboxClient:
    return CellblockSandboxClient(URL, key=KEY)


@asynccontextmanager
async def started(client: CellblockSandboxClient, **arguments: Any) -> AsyncIterator[SandboxSession]:
    session = await client.create(**arguments)
    try:
        await session.start()
        yield session
    finally:
        await client.delete(session)


async def test_commands_have_their_exit_code_and_both_streams_as_bytes(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        done = await session.exec("printf 'a\\377'; echo b >&2; exit 3")
        assert (done.stdout, done.stderr, done.exit_code) == (b"a\xff", b"b\n", 3)
        literal = await session.exec("printf", "%s", "$HOME; `id`", shell=False)
        assert literal.stdout == b"$HOME; `id`"
        assert (await session.exec("pwd")).stdout == b"/workspace\n"
        assert (await session.exec("missing-program", shell=False)).exit_code == 127


async def test_a_command_that_exceeds_its_timeout_is_killed_with_its_children(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        with pytest.raises(ExecTimeoutError):
            await session.exec("sleep 1234 & sleep 1234", timeout=1)
        left = await session.exec("ps ax | grep -c '[s]leep 1234'")
        assert left.stdout == b"0\n"


async def test_a_canceled_task_kills_its_command(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        task = asyncio.create_task(session.exec("touch started; exec sleep 4321"))
        while (await session.exec("test -e started")).exit_code != 0:
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        until = time.monotonic() + 10
        while (await session.exec("ps ax | grep -q '[s]leep 4321'")).exit_code == 0:
            assert time.monotonic() < until
            await asyncio.sleep(0.1)


async def test_a_server_in_the_background_answers_later_commands(client: CellblockSandboxClient) -> None:
    options = CellblockSandboxClientOptions(network="loopback", env={"GREETING": "hello"})
    async with started(client, options=options) as session:
        await session.exec("echo $GREETING > index.html; nohup python3 -m http.server 8123 >/dev/null 2>&1 &")
        fetch = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8123/index.html').read().decode(), end='')"
        until = time.monotonic() + 20
        while (done := await session.exec("python3", "-c", fetch, shell=False)).exit_code != 0:
            assert time.monotonic() < until, done.stderr
            await asyncio.sleep(0.2)
        assert done.stdout == b"hello\n"


async def test_files_are_written_read_and_listed(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        content = bytes(range(256)) * 5000
        await session.write(Path("a/b/data.bin"), io.BytesIO(content))
        assert (await session.read(Path("a/b/data.bin"))).read() == content
        assert (await session.read(Path("/workspace/a/b/data.bin"))).read() == content
        assert await session.read_bounded(Path("a/b/data.bin"), max_bytes=300) == content[:300]
        assert (await session.exec("wc -c < a/b/data.bin")).stdout == b"1280000\n"
        assert [Path(entry.path).name for entry in await session.ls("a/b")] == ["data.bin"]
        await session.mv("a/b/data.bin", "moved.bin")
        await session.rm("a", recursive=True)
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path("a/b/data.bin"))
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read_bounded(Path("a/b/data.bin"), max_bytes=1)
        with pytest.raises(WorkspaceArchiveWriteError):
            await session.write(Path("moved.bin/below"), io.BytesIO(b"x"))


async def test_paths_that_leave_the_workspace_are_rejected(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        await session.exec("ln -s /etc outside")
        for path in ("../etc/passwd", "/etc/passwd", "outside/passwd"):
            with pytest.raises(InvalidManifestPathError):
                await session.read(Path(path))


async def test_another_user_is_rejected_by_name(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        assert (await session.exec("pwd", user="user")).stdout == b"/workspace\n"
        with pytest.raises(ExecTransportError, match="it cannot run commands as `root`"):
            await session.exec("id", user="root")


async def test_the_manifest_is_in_the_workspace_before_the_first_command(client: CellblockSandboxClient) -> None:
    entries: dict[str | Path, BaseEntry] = {"notes/a.txt": File(content=b"alpha"), "empty": Dir()}
    manifest = Manifest(entries=entries, environment=Environment(value={"TOKEN": "t1"}))
    async with started(client, manifest=manifest) as session:
        assert (await session.exec("cat notes/a.txt; ls -d empty; echo $TOKEN")).stdout == b"alphaempty\nt1\n"


async def test_an_archive_of_the_workspace_restores_it_elsewhere(client: CellblockSandboxClient) -> None:
    async with started(client) as first, started(client) as second:
        await first.exec("mkdir -p x/y; echo 1 > x/y/z; ln -s x/y/z link; printf '#!/bin/sh\\necho ran\\n' > run; chmod +x run")
        first.register_persist_workspace_skip_path("left-out")
        await first.exec("mkdir left-out; echo no > left-out/f")
        archive = await first.persist_workspace()
        with tarfile.open(fileobj=io.BytesIO(archive.read())) as tar:
            names = tar.getnames()
        assert "./x/y/z" in names
        assert not any("left-out" in name for name in names)
        archive.seek(0)
        await second.hydrate_workspace(archive)
        assert (await second.exec("cat link; ./run")).stdout == b"1\nran\n"
        assert (await second.exec("ls -A /tmp | grep -c tar$")).stdout == b"0\n"


async def test_an_archive_that_leaves_the_workspace_is_rejected(client: CellblockSandboxClient) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    buffer.seek(0)
    async with started(client) as session:
        with pytest.raises(WorkspaceArchiveWriteError):
            await session.hydrate_workspace(buffer)


async def test_a_session_is_resumed_from_its_state_while_it_lives(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        await session.exec("echo kept > kept; nohup sleep 999 >/dev/null 2>&1 &")
        payload = json.loads(json.dumps(client.serialize_session_state(session.state)))
        assert "key" not in json.dumps(payload)
        other = CellblockSandboxClient(URL, key=KEY)
        state = other.deserialize_session_state(payload)
        assert isinstance(state, CellblockSandboxSessionState)
        resumed = await other.resume(state)
        await resumed.start()
        assert await resumed.running()
        assert (await resumed.exec("cat kept; ps ax | grep -c '[s]leep 999'")).stdout == b"kept\n1\n"


async def test_an_ended_session_is_resumed_from_its_snapshot(client: CellblockSandboxClient, tmp_path: Path) -> None:
    session = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path))
    async with session:
        await session.write(Path("a.txt"), io.BytesIO(b"before"))
        payload = client.serialize_session_state(session.state)
    assert not await session.running()
    resumed = await client.resume(client.deserialize_session_state(json.loads(json.dumps(payload))))
    try:
        await resumed.start()
        assert resumed.state.session_id == session.state.session_id
        assert (await resumed.read(Path("a.txt"))).read() == b"before"
    finally:
        await client.delete(resumed)


async def test_a_deleted_session_is_gone_from_the_server(client: CellblockSandboxClient) -> None:
    async with started(client) as session:
        state = session.state
        assert isinstance(state, CellblockSandboxSessionState)
        id = state.cellblock_session
    with pytest.raises(cellblock.ServerError, match=r"session"):
        cellblock.Session(URL, key=KEY, id=id)
    await client.delete(session)
    with pytest.raises(ExecTransportError):
        await session.exec("true")


async def test_an_agent_runs_commands_and_patches_files(client: CellblockSandboxClient) -> None:
    patch = "*** Begin Patch\n*** Add File: app.py\n+print(6 * 7)\n*** End Patch"
    model = ScriptedModel(
        [
            [function_call("exec_command", {"cmd": "cat input.txt"}, call_id="c1")],
            [ResponseCustomToolCall(type="custom_tool_call", name="apply_patch", input=patch, call_id="c2")],
            [function_call("exec_command", {"cmd": "python3 app.py"}, call_id="c3")],
            [assistant_message("done")],
        ]
    )
    agent = SandboxAgent(name="tester", model=model, instructions="Use the sandbox.")
    manifest = Manifest(entries={"input.txt": File(content=b"from the manifest")})
    config = RunConfig(sandbox=SandboxRunConfig(client=client, manifest=manifest), tracing_disabled=True)
    result = await Runner.run(agent, "Go.", run_config=config)
    assert result.final_output == "done"
    outputs = [str(item.output) for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert "from the manifest" in outputs[0]
    assert "42" in outputs[2]
    assert "Process exited with code 0" in outputs[2]

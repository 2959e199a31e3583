"""Uses OpenSandbox's libraries as their documentation does. OPEN_SANDBOX_DOMAIN and OPEN_SANDBOX_API_KEY name the server."""

import asyncio
import unittest
from datetime import timedelta

import httpx
from code_interpreter import CodeInterpreter, SupportedLanguage
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    MoveEntry,
    SearchEntry,
    SetPermissionEntry,
    WriteEntry,
)
from opensandbox.models.sandboxes import SandboxFilter


def same(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


def text(messages: list) -> str:
    return "".join(message.text for message in messages)


async def check_code(interpreter: CodeInterpreter) -> None:
    codes = interpreter.codes
    context = await codes.create_context(SupportedLanguage.PYTHON)
    other = await codes.create_context(SupportedLanguage.PYTHON)
    heard: list[str] = []

    async def on_stdout(message: object) -> None:
        heard.append(message.text)

    handlers = ExecutionHandlers(on_stdout=on_stdout)
    result = await codes.run("x = 40\nprint('one')\nx + 2", context=context, handlers=handlers)
    same((text(result.logs.stdout), result.result[0].text, heard), ("one\n", "42", ["one\n"]))
    result = await codes.run("x", context=other)
    same((result.error.name, result.error.value), ("NameError", "name 'x' is not defined"))
    same((await codes.run("print(x)", context=context)).execution_count, 2)
    same(len(await codes.list_contexts(SupportedLanguage.PYTHON)), 2)
    same((await codes.get_context(context.id)).language, "python")
    await codes.delete_context(other.id)
    await codes.delete_contexts(SupportedLanguage.PYTHON)
    same(await codes.list_contexts(SupportedLanguage.PYTHON), [])
    result = await codes.run("echo $((6 * 7))", language=SupportedLanguage.BASH)
    same(text(result.logs.stdout), "42\n")

    begun = asyncio.Event()
    ids: list[str] = []

    async def on_init(init: object) -> None:
        ids.append(init.id)
        begun.set()

    handlers = ExecutionHandlers(on_init=on_init)
    running = asyncio.create_task(codes.run("import time; time.sleep(60)", handlers=handlers))
    await begun.wait()
    await asyncio.sleep(0.3)
    await codes.interrupt(ids[0])
    same((await running).error.name, "KeyboardInterrupt")


async def check_commands(sandbox: Sandbox) -> None:
    commands = sandbox.commands
    result = await commands.run("echo out; echo err >&2; exit 3")
    same((text(result.logs.stdout), text(result.logs.stderr), result.exit_code), ("out\n", "err\n", 3))
    opts = RunCommandOpts(envs={"A": "b"}, working_directory="/tmp")
    same((await commands.run('echo "$A $COLOR"; pwd', opts=opts)).text, "b blue\n/tmp")
    result = await commands.run("echo begun; sleep 60", opts=RunCommandOpts(background=True))
    logs = await commands.get_background_command_logs(result.id)
    while logs.content != "begun\n":
        await asyncio.sleep(0.05)
        logs = await commands.get_background_command_logs(result.id)
    same((await commands.get_background_command_logs(result.id, cursor=logs.cursor)).content, "")
    same((await commands.get_command_status(result.id)).running, True)
    await commands.interrupt(result.id)
    while (await commands.get_command_status(result.id)).running:
        await asyncio.sleep(0.05)
    session = await commands.create_session(working_directory="/tmp")
    await commands.run_in_session(session, "y=7")
    result = await commands.run_in_session(session, "echo $y; pwd; false")
    same((result.text, result.exit_code), ("7\n/tmp", 1))
    await commands.delete_session(session)


async def check_files(sandbox: Sandbox) -> None:
    files = sandbox.files
    await files.write_files(
        [
            WriteEntry(path="/workspace/a/one.txt", data="first\nsecond\n", mode=644),
            WriteEntry(path="/workspace/two.md", data=b"two"),
        ]
    )
    same(await files.read_file("/workspace/a/one.txt"), "first\nsecond\n")
    same(await files.read_bytes("/workspace/a/one.txt", range_header="bytes=6-11"), b"second")
    await files.replace_contents([ContentReplaceEntry(path="/workspace/two.md", old_content="two", new_content="2")])
    await files.move_files([MoveEntry(src="/workspace/two.md", dest="/workspace/b/two.md")])
    await files.set_permissions([SetPermissionEntry(path="/workspace/b/two.md", mode=600)])
    info = await files.get_file_info(["/workspace/b/two.md"])
    same((info["/workspace/b/two.md"].mode, info["/workspace/b/two.md"].size), (600, 1))
    found = await files.search(SearchEntry(path="/workspace", pattern="*.txt"))
    same([entry.path for entry in found], ["/workspace/a/one.txt"])
    await files.create_directories([WriteEntry(path="/workspace/c", mode=755)])
    await files.delete_directories(["/workspace/c"])
    await files.delete_files(["/workspace/b/two.md"])
    try:
        await files.read_file("/workspace/b/two.md")
    except SandboxApiException as error:
        same(error.status_code, 404)
    else:
        raise AssertionError("a file that was deleted is read")


async def fetch(url: str, headers: dict[str, str]) -> str:
    """Reads a page of a server that is starting."""
    async with asyncio.timeout(60), httpx.AsyncClient(headers=headers) as client:
        while (answer := await client.get(url)).status_code == 502:
            await asyncio.sleep(0.1)
        return answer.text


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.config = ConnectionConfig(disable_metrics=True)
        self.sandbox = await Sandbox.create(
            "opensandbox/code-interpreter:v1.1.0",
            connection_config=self.config,
            timeout=timedelta(minutes=5),
            env={"COLOR": "blue"},
            metadata={"purpose": self.id()},
        )

    async def asyncTearDown(self) -> None:
        await self.sandbox.kill()
        same(await self.sandbox.is_healthy(), False)
        await self.sandbox.close()

    async def test_code_runs_in_contexts(self) -> None:
        # Finds out that execd answers, and that code can run.
        interpreter = await CodeInterpreter.create(self.sandbox)
        await check_code(interpreter)
        await interpreter.aclose()

    async def test_commands_run(self) -> None:
        await check_commands(self.sandbox)

    async def test_files_are_written_and_found(self) -> None:
        await check_files(self.sandbox)

    async def test_a_sandbox_is_described_and_renewed(self) -> None:
        sandbox, purpose = self.sandbox, {"purpose": self.id()}
        metrics = await sandbox.get_metrics()
        if metrics.cpu_count < 1 or metrics.memory_total_in_mib <= 0:
            raise AssertionError(f"{metrics!r}")
        info = await sandbox.get_info()
        same((info.id, info.status.state, info.metadata), (sandbox.id, "Running", purpose))
        renewed = await sandbox.renew(timedelta(minutes=10))
        if renewed.expires_at <= info.expires_at:
            raise AssertionError("the expiration is not later")
        manager = await SandboxManager.create(connection_config=self.config)
        listed = await manager.list_sandbox_infos(SandboxFilter(metadata=purpose))
        same([it.id for it in listed.sandbox_infos], [sandbox.id])
        patch = {"more": "1", "purpose": None}
        same((await manager.patch_sandbox_metadata(sandbox.id, patch)).metadata, {"more": "1"})
        await manager.close()

    async def test_a_sandbox_is_paused_and_resumed(self) -> None:
        sandbox = self.sandbox
        await sandbox.commands.run("echo kept > kept.txt")
        await sandbox.pause()
        same((await sandbox.get_info()).status.state, "Paused")
        resumed = await Sandbox.resume(sandbox.id, connection_config=self.config)
        same((text((await resumed.commands.run("cat kept.txt")).logs.stdout), resumed.id), ("kept\n", sandbox.id))
        await resumed.close()

    async def test_a_server_in_a_sandbox_is_reached(self) -> None:
        sandbox = self.sandbox
        await sandbox.commands.run("echo kept > kept.txt")
        serve = "exec python3 -m http.server 8123 --bind 127.0.0.1"
        await sandbox.commands.run(serve, opts=RunCommandOpts(background=True))
        endpoint = await sandbox.get_endpoint(8123)
        same(await fetch(f"http://{endpoint.endpoint}/kept.txt", endpoint.headers), "kept\n")

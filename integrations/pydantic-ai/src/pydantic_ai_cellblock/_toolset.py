"""Tools of a model: Python whose variables persist, shell commands, and files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

import cellblock
import cellblock.aio
from pydantic_ai import BinaryContent, FunctionToolset, RunContext, ToolFailed

#: Characters of text that a model gets of one call.
_MAX_TEXT = 20_000
#: Pictures that a model gets of one call.
_MAX_PICTURES = 4


class CellblockToolset(FunctionToolset[Any]):
    """Gives an agent the tools `run_python`, `run_command`, `read_file` and `write_file` in a sandbox of Cellblock.

    Each run of the agent has a sandbox of its own, which starts with the first call of a tool and ends with the run. With `session`, all
    runs use that session, and the variables of one run are there in the next; you close it.

    The other arguments are those of `cellblock.Session`; without `url`, Cellblock runs on this machine.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        idle_timeout: float = 3600,
        limits: Mapping[str, Any] | None = None,
        network: str | None = None,
        session: cellblock.aio.Session | None = None,
        timeout: float = 120,
        id: str | None = None,
    ) -> None:
        super().__init__(
            [self.run_python, self.run_command, self.read_file, self.write_file],
            # Calls of one step may depend on each other.
            sequential=True,
            id=id,
        )
        self._url = url
        self._settings: dict[str, Any] = {"key": key, "idle_timeout": idle_timeout, "limits": limits, "network": network}
        self._given = session
        self._own: cellblock.aio.Session | None = None
        self._seconds = timeout

    async def for_run(self, ctx: RunContext[Any]) -> CellblockToolset:
        """Returns a toolset for one run, with a sandbox that no other run sees."""
        if self._given is not None:
            return self
        return CellblockToolset(self._url, **self._settings, timeout=self._seconds, id=self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        own, self._own = self._own, None
        if own is not None:
            await own.close()
        return None

    async def _session(self) -> cellblock.aio.Session:
        if self._given is not None:
            return await self._given.start()
        if self._own is None:
            self._own = await cellblock.aio.Session(self._url, **self._settings).start()
        return self._own

    async def run_python(self, code: str, timeout: float | None = None) -> str | list[str | BinaryContent]:
        """Runs Python in a sandbox. Variables and files stay for later calls. The value of the last expression is shown.

        Args:
            code: The code.
            timeout: Seconds that it may run.
        """
        session = await self._session()
        result = await session.run(code, timeout=timeout or self._seconds)
        text = _shortened(_described(result))
        pictures = [it for it in result.outputs if isinstance(it, cellblock.Figure) and it.media_type.startswith("image/")]
        if not pictures:
            return text
        # Fetching them is a request each.
        shown = pictures[-_MAX_PICTURES:]
        contents = [BinaryContent(data=await asyncio.to_thread(_picture, it), media_type=it.media_type) for it in shown]
        return [text, *contents]

    async def run_command(self, command: str, timeout: float | None = None) -> str:
        """Runs a shell command in the sandbox, in /workspace, and returns what it wrote and its exit code.

        Args:
            command: The command, for bash.
            timeout: Seconds that it may run.
        """
        seconds = timeout or self._seconds
        done = await (await self._session()).shell.run(command, timeout=seconds, merged=True, max_output=1 << 20)
        text = _shortened(done.stdout.decode(errors="replace"))
        end = f"killed after {seconds:g} seconds" if done.timed_out else f"exit code {done.exit_code}"
        return f"{text.rstrip()}\n[{end}]".lstrip("\n")

    async def read_file(self, path: str) -> str:
        """Returns the text of a file in the sandbox.

        Args:
            path: Its path; relative ones are below /workspace.
        """
        try:
            content = await (await self._session()).shell.read(path, max_bytes=16 << 20)
            return _shortened(content.decode())
        except UnicodeDecodeError as error:
            raise ToolFailed(f"`{path}` is not UTF-8 text; read it with `run_python`") from error
        except OSError as error:
            raise ToolFailed(str(error)) from error

    async def write_file(self, path: str, content: str) -> str:
        """Writes text to a file in the sandbox and creates missing folders.

        Args:
            path: Its path; relative ones are below /workspace.
            content: The text.
        """
        try:
            await (await self._session()).shell.write(path, content)
        except OSError as error:
            raise ToolFailed(str(error)) from error
        return f"wrote {len(content.encode())} bytes to {path}"


def _picture(figure: cellblock.Figure) -> bytes:
    return figure.picture


def _described(result: cellblock.Result) -> str:
    parts = [result.stdout.rstrip("\n"), result.stderr.rstrip("\n")]
    parts += [_output(it) for it in result.outputs if it.type != "exception"]
    if result.files:
        parts.append("files: " + ", ".join(f"{file.path} ({file.size} bytes)" for file in result.files))
    if not result.ok:
        parts.append(result.describe_error())
    return "\n".join(part for part in parts if part) or "(no output)"


def _output(output: cellblock.Output) -> str:
    if isinstance(output, cellblock.Table):
        return _table(output.data)
    if isinstance(output, cellblock.Figure):
        return f"({output.type} {output.name or ''})".replace(" )", ")")
    value = output.data.get("value")
    return value if isinstance(value, str) else json.dumps(value if value is not None else output.data, ensure_ascii=False)


def _table(data: Mapping[str, Any]) -> str:
    """Some rows of a table as CSV, with its size."""
    head: Sequence[Sequence[Any]] = data["head"]
    tail: Sequence[Sequence[Any]] = data["tail"]
    lines = [f"table of {data['rows']} rows", ",".join(str(column["name"]) for column in data["columns"])]
    lines += [",".join(_cell(value) for value in row) for row in head]
    if len(head) + len(tail) < data["rows"]:
        lines.append("…")
    lines += [",".join(_cell(value) for value in row) for row in tail]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    half = _MAX_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"

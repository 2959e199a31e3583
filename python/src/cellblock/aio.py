"""The same sessions for asyncio.

    import cellblock.aio

    async with cellblock.aio.Session() as session:
        print((await session.run("20 + 22")).value)

A task that is cancelled while it waits for a cell interrupts the cell; the session goes on. Results are those of `cellblock`, and what
they fetch (`png`, `to_pandas()`) blocks: use `asyncio.to_thread` for large ones.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from . import _branches, _client, _process, _session, _shell, _terminal
from ._errors import CellblockError
from ._results import Result
from ._shell import Command, CommandResult

__all__ = ["Client", "Process", "Session", "Shell", "Terminal", "Try"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R")
_S = TypeVar("_S")

#: Threads that wait for the server. Those of `asyncio.to_thread` are few, and all of them would wait for commands that one more is needed
#: to end.
_threads = ThreadPoolExecutor(max_workers=512, thread_name_prefix="cellblock")


def _start(work: Callable[..., _T], *arguments: Any, **named: Any) -> asyncio.Future[_T]:
    return asyncio.get_running_loop().run_in_executor(_threads, partial(work, *arguments, **named))


async def _both(first: asyncio.Future[Any], second: asyncio.Future[Any]) -> None:
    """Waits for both. Neither is canceled with this task, which anyio cancels again and again."""
    for it in (first, second):
        # What a canceled task's cell or command fails with is for nobody, and asyncio would log it.
        it.add_done_callback(_retrieve)
    await asyncio.wait([first, second])


def _retrieve(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()


async def _in_thread(work: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
    return await _start(work, *arguments, **named)


async def _each(items: Callable[[], Iterator[_T]], canceled: Callable[[], object] | None = None) -> AsyncIterator[_T]:
    """Yields items that a thread waits for. A task that is canceled meanwhile calls `canceled`, which ends the wait."""
    source = await _start(items)
    end = object()
    try:
        while (item := await _start(next, source, end)) is not end:
            yield cast(_T, item)
    except asyncio.CancelledError:
        if canceled is not None:
            _threads.submit(canceled)
        raise
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            # A source that a thread waits for cannot be closed; it is when that thread has ended.
            _threads.submit(close)


def _as(_: Callable[Concatenate[Any, _P], _T]) -> Callable[[Callable[..., _R]], Callable[Concatenate[Any, _P], _R]]:
    """Gives a function the arguments of another."""
    return lambda function: function


class _Async(Generic[_P, _R]):
    """A method that runs a method of `cellblock` in a thread: its arguments, and its result as `convert` returns it."""

    def __init__(self, method: Callable[Concatenate[Any, _P], _T], convert: Callable[[_T], _R]) -> None:
        self._method: Callable[..., Any] = method
        self._convert: Callable[[Any], _R] = convert
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type[Any]) -> Callable[_P, Coroutine[Any, Any, _R]]:
        async def call(*arguments: Any, **named: Any) -> _R:
            return self._convert(await _in_thread(self._method, instance._sync, *arguments, **named))

        call.__doc__ = self.__doc__
        return call


def _same(value: _T) -> _T:
    return value


def _run(method: Callable[Concatenate[Any, _P], _T]) -> _Async[_P, _T]:
    return _Async(method, _same)


class _Face(Generic[_S]):
    """An object of `cellblock` whose methods run in threads."""

    def __init__(self, sync: _S) -> None:
        self._object: _S | None = sync

    def __repr__(self) -> str:
        return repr(self._object)

    @property
    def _sync(self) -> _S:
        if self._object is None:
            raise CellblockError("the session has not started; use `async with`")
        return self._object


class Terminal(_Face[_terminal.Terminal]):
    """A terminal of a process, as `cellblock`'s."""

    send = _run(_terminal.Terminal.send)
    resize = _run(_terminal.Terminal.resize)
    read = _run(_terminal.Terminal.read)
    close = _run(_terminal.Terminal.close)

    @property
    def end(self) -> dict[str, Any] | None:
        """How the process ended, once its output was read to the end."""
        return self._sync.end

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _each(self._sync.__iter__)


class Process(_Face[_process.Process]):
    """A program of a session, as `cellblock.Process`."""

    status = _run(_process.Process.status)
    output = _run(_process.Process.output)
    read = _run(_process.Process.read)
    send = _run(_process.Process.send)
    signal = _run(_process.Process.signal)
    wait = _run(_process.Process.wait)
    terminal = _Async(_process.Process.terminal, Terminal)

    @property
    def id(self) -> str:
        """Its ID in the session."""
        return self._sync.id

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return self._sync.command

    def __aiter__(self) -> AsyncIterator[str]:
        return _each(self._sync.__iter__)


class Try(_Face[_branches.Try]):
    """A cell whose effects count only once it is kept, as `cellblock.Try`."""

    keep = _run(_branches.Try.keep)
    discard = _run(_branches.Try.discard)

    @property
    def result(self) -> Result:
        """What the cell returned."""
        return self._sync.result

    @property
    def changes(self) -> Any:
        """Variables and files that the cell created, changed or removed."""
        return self._sync.changes

    @property
    def undecided(self) -> bool:
        """Whether the session waits for `keep` or `discard`."""
        return self._sync.undecided


def _sessions(made: list[_session.Session]) -> list[Session]:
    return [_wrapped(it) for it in made]


def _wrapped(session: _session.Session) -> Session:
    wrapped = Session()
    wrapped._object = session
    return wrapped


def _processes(found: list[_process.Process]) -> list[Process]:
    return [Process(it) for it in found]


class Session(_Face[_session.Session]):
    """A sandbox whose variables live until it ends. The arguments are those of `cellblock.Session`; it starts with `async with`."""

    @_as(_session.Session.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._open = partial(_session.Session, *arguments, **options)
        self._object = None

    interrupt = _run(_session.Session.interrupt)
    reset = _run(_session.Session.reset)
    describe = _run(_session.Session.describe)
    result = _run(_session.Session.result)
    cells = _run(_session.Session.cells)
    cell = _run(_session.Session.cell)
    variables = _run(_session.Session.variables)
    variable = _run(_session.Session.variable)
    origin = _run(_session.Session.origin)
    put = _run(_session.Session.put)
    put_artifact = _run(_session.Session.put_artifact)
    write = _run(_session.Session.write)
    read = _run(_session.Session.read)
    remove = _run(_session.Session.remove)
    files = _run(_session.Session.files)
    mount = _run(_session.Session.mount)
    datasets = _run(_session.Session.datasets)
    tools = _run(_session.Session.tools)
    call_tool = _run(_session.Session.call_tool)
    record = _run(_session.Session.record)
    aliases = _run(_session.Session.aliases)
    checkpoint = _run(_session.Session.checkpoint)
    checkpoints = _run(_session.Session.checkpoints)
    rollback = _run(_session.Session.rollback)
    delete_checkpoint = _run(_session.Session.delete_checkpoint)
    fork = _Async(_session.Session.fork, _sessions)
    try_run = _Async(_session.Session.try_run, Try)
    keep_try = _run(_session.Session.keep_try)
    discard_try = _run(_session.Session.discard_try)
    hibernate = _run(_session.Session.hibernate)
    events = _run(_session.Session.events)
    start_process = _Async(_session.Session.start_process, Process)
    processes = _Async(_session.Session.processes, _processes)
    ports = _run(_session.Session.ports)
    link = _run(_session.Session.link)
    usage = _run(_session.Session.usage)

    async def start(self) -> Session:
        """Starts the session, for programs that cannot use `async with`. They close it themselves."""
        if self._object is not None:
            return self
        start = _start(self._open)
        try:
            self._object = await asyncio.shield(start)
        except asyncio.CancelledError:
            # The thread goes on: what it starts must not be left.
            start.add_done_callback(_close)
            raise
        return self

    async def __aenter__(self) -> Session:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def id(self) -> str:
        """The session's ID on its server, and empty after `close`."""
        return self._sync.id

    @property
    def shell(self) -> Shell:
        """Runs commands in the sandbox, and reads and writes any of its files."""
        return Shell(self._sync)

    @property
    def client(self) -> Client:
        """The session's server."""
        return Client._of(self._sync.client)

    async def alive(self) -> bool:
        """Whether the session has not ended, by itself or because it was closed."""
        return await _in_thread(lambda: self._sync.alive)

    @_as(_session.Session.run)
    async def run(self, *arguments: Any, **named: Any) -> Result:
        """Runs a cell, as `cellblock.Session.run`. `on_output` is called in another thread."""
        session = self._sync
        running = _threads.submit(session.run, *arguments, **named)
        work = asyncio.wrap_future(running)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await _both(_start(_interrupt, session, running), work)
            raise

    @_as(_session.Session.stream)
    def stream(self, *arguments: Any, **named: Any) -> AsyncIterator[dict[str, Any]]:
        """Runs a cell and yields its events, as `cellblock.Session.stream`. A task that is canceled interrupts the cell."""
        return _each(partial(self._sync.stream, *arguments, **named), self._sync.interrupt)

    @_as(_session.Session.resume)
    def resume(self, *arguments: Any, **named: Any) -> AsyncIterator[dict[str, Any]]:
        """Yields the events of a cell with a `stream_id`, as `cellblock.Session.resume`."""
        return _each(partial(self._sync.resume, *arguments, **named))

    async def close(self) -> None:
        """Ends the session and its sandbox."""
        if self._object is not None:
            await _in_thread(self._object.close)


class Client(_Face[_client.Client]):
    """A Cellblock server, as `cellblock.Client`."""

    @_as(_client.Client.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(_client.Client(*arguments, **options))

    @classmethod
    def _of(cls, client: _client.Client) -> Client:
        made = cls.__new__(cls)
        made._object = client
        return made

    def session(self, **options: Any) -> Session:
        """Returns a session of this server, which starts with `async with`. The options are those of `Session`."""
        server = self._sync._server
        return Session(server.url, key=server.key, **options)

    sessions = _run(_client.Client.sessions)
    volumes = _run(_client.Client.volumes)
    volume = _run(_client.Client.volume)
    delete_volume = _run(_client.Client.delete_volume)
    runs = _run(_client.Client.runs)
    run = _run(_client.Client.run)
    export_run = _run(_client.Client.export_run)
    replay = _run(_client.Client.replay)
    artifact = _run(_client.Client.artifact)
    rows = _run(_client.Client.rows)
    rows_as = _run(_client.Client.rows_as)
    datasets = _run(_client.Client.datasets)
    dataset = _run(_client.Client.dataset)
    dataset_content = _run(_client.Client.dataset_content)
    dataset_versions = _run(_client.Client.dataset_versions)
    remove_dataset = _run(_client.Client.remove_dataset)
    skills = _run(_client.Client.skills)
    skill = _run(_client.Client.skill)
    add_skill = _run(_client.Client.add_skill)
    add_skill_version = _run(_client.Client.add_skill_version)
    set_skill_version = _run(_client.Client.set_skill_version)
    skill_versions = _run(_client.Client.skill_versions)
    skill_version = _run(_client.Client.skill_version)
    skill_content = _run(_client.Client.skill_content)
    delete_skill = _run(_client.Client.delete_skill)
    connectors = _run(_client.Client.connectors)
    call = _run(_client.Client.call)
    decisions = _run(_client.Client.decisions)
    own_key = _run(_client.Client.own_key)
    keys = _run(_client.Client.keys)
    create_key = _run(_client.Client.create_key)
    revoke_key = _run(_client.Client.revoke_key)
    server = _run(_client.Client.server)
    backends = _run(_client.Client.backends)
    execute = _run(_client.Client.execute)


class Shell:
    """Runs commands and uses files, as `cellblock.Shell`. A task that is cancelled while it waits for a command kills it."""

    def __init__(self, session: _session.Session) -> None:
        self._sync = session.shell

    @_as(_shell.Shell.run)
    async def run(self, *arguments: Any, **named: Any) -> CommandResult:
        """Runs a command to its end, as `cellblock.Shell.run`."""
        start = _start(self._sync.start, *arguments, **named)
        try:
            started = await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(_kill)
            raise
        result = _start(started.result)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            await _both(_start(started.kill), result)
            raise

    read = _run(_shell.Shell.read)
    write = _run(_shell.Shell.write)


def _interrupt(session: _session.Session, running: Future[Result]) -> None:
    """Interrupts a cell until it has ended: an interrupt can arrive before the cell does, and then has nothing to interrupt."""
    while not running.done():
        # The request of the cell fails as well, and ends the loop.
        with contextlib.suppress(CellblockError):
            session.interrupt()
        wait([running], 0.25)


def _kill(start: asyncio.Future[Command]) -> None:
    if not start.cancelled() and start.exception() is None:
        _threads.submit(start.result().kill)


def _close(start: asyncio.Future[_session.Session]) -> None:
    if not start.cancelled() and start.exception() is None:
        _threads.submit(start.result().close)

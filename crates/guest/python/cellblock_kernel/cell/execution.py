"""Runs compiled code: synchronously, or on the kernel's event loop if the cell awaits."""

from __future__ import annotations

import os
from types import CodeType
from typing import Any

from cellblock_kernel.cell.source import Program

_eval = eval
# `inspect.CO_COROUTINE`, without that module, which takes long to import.
_CO_COROUTINE = 0x80


def _awaits(code: CodeType | None) -> bool:
    return code is not None and bool(code.co_flags & _CO_COROUTINE)


async def _run_awaiting(body: CodeType | None, last: CodeType | None, names: dict[str, Any]) -> Any:
    """Runs both parts of a cell inside the loop, as either may use the running loop."""
    value = None
    for code in (body, last):
        if code is not None:
            value = _eval(code, names)
            if _awaits(code):
                value = await value
    return None if last is None else value


class Runner:
    """Keeps one event loop for all cells, created when the first cell awaits."""

    def __init__(self) -> None:
        self._loop: Any = None

    def descriptors(self) -> set[int]:
        """Returns the descriptors of the loop."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return set()
        return {loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()}

    def reopen(self) -> None:
        """Makes the descriptors of the loop again, in a process that has none of them."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        import select
        import socket

        from cellblock_kernel.rescue.arrival import place

        ours, theirs = socket.socketpair()
        for made, kept in ((ours, loop._ssock), (theirs, loop._csock)):
            made.setblocking(False)
            place(made.detach(), kept.fileno(), False)
        poll = select.epoll()
        number = loop._selector.fileno()
        place(os.dup(poll.fileno()), number, False)
        loop._selector._selector.register(loop._ssock.fileno(), select.EPOLLIN)

    def run(self, program: Program, names: dict[str, Any]) -> Any:
        """Runs the statements, then evaluates the trailing expression and returns its value."""
        body, last = program.body, program.last
        if _awaits(body) or _awaits(last):
            return self._await(_run_awaiting(body, last, names))
        if body is not None:
            _eval(body, names)
        return None if last is None else _eval(last, names)

    def _await(self, coroutine: Any) -> Any:
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            # An interrupt leaves the task half done: let it clean up, as asyncio.run would.
            if not task.done():
                task.cancel()
                try:
                    self._loop.run_until_complete(task)
                except asyncio.CancelledError:
                    pass
            raise

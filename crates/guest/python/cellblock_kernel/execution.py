"""Runs compiled code: synchronously, or on the kernel's event loop where the cell awaits."""

from inspect import CO_COROUTINE
from types import CodeType
from typing import Any

from cellblock_kernel.source import Program

_eval = eval


class Runner:
    """Keeps one event loop for all cells, made when the first cell awaits."""

    def __init__(self) -> None:
        self._loop: Any = None

    def run(self, program: Program, names: dict[str, Any]) -> Any:
        """Runs the statements, then evaluates the trailing expression and returns its value."""
        if program.body is not None:
            self._run_code(program.body, names)
        if program.last is not None:
            return self._run_code(program.last, names)
        return None

    def _run_code(self, code: CodeType, names: dict[str, Any]) -> Any:
        value = _eval(code, names)
        return self._await(value) if code.co_flags & CO_COROUTINE else value

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

"""Replacements for functions that need a terminal: input, help pages, the debugger, leaving the interpreter."""

from __future__ import annotations

import builtins
import os
import sys
import threading
import warnings
from typing import Any, NoReturn

from cellblock_kernel.cell import failure, forking, inspection
from cellblock_kernel.library import open_document
from cellblock_kernel.notebook import modules
from cellblock_kernel.outputs import drawn, fonts, style

_CHARS = 20_000
_CELLS = os.path.dirname(__file__)


def _input(prompt: object = "", /) -> NoReturn:
    if prompt != "":
        print(prompt, flush=True)
    raise EOFError("cells have no stdin: put the value into the code, or bind it as an input")


def _breakpoint(*arguments: object, **named: object) -> NoReturn:
    raise RuntimeError("breakpoint() is disabled: cells have no terminal; print or display what you want to see")


class _Exit:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"Use {self._name}() to end the cell"

    def __call__(self, code: object = None) -> NoReturn:
        raise SystemExit(code)


class _Help:
    def __repr__(self) -> str:
        return "Type help(object) for help about object."

    def __call__(self, *request: Any) -> None:
        import pydoc

        if request:
            pydoc.pager = pydoc.plainpager
            pydoc.Helper(output=sys.stdout)(*request)
        else:
            print("call help(object) for help about an object")


def _format_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    text = f"{failure.type_name(category)}: {message}\n"
    if line:
        text += f"  {line.strip()}\n"
    if filename.startswith(failure._OWN):
        # Of code that a cell runs with too high a `stacklevel`; others are about our own conversions.
        return text if filename.startswith(_CELLS) else ""
    if failure.is_user_file(filename):
        return f"{filename}:{lineno}: {text}"
    return f"{failure.short_path(filename)}:{lineno}: {text}"


def _report(error: BaseException | None) -> str:
    return "" if error is None else failure.describe(error, None, _CHARS).traceback


def _on_exception(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    print(_report(error), end="", file=sys.stderr)


def _on_thread_exception(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_type is SystemExit:
        return
    name = arguments.thread.name if arguments.thread is not None else "unknown"
    print(f"Exception in thread {name}:\n{_report(arguments.exc_value)}", end="", file=sys.stderr)


def install() -> None:
    """Replaces functions that would wait for a person or print paths of the kernel."""
    names: dict[str, Any] = builtins.__dict__
    names["input"] = _input
    names["help"] = _Help()
    names["exit"] = _Exit("exit")
    names["quit"] = _Exit("quit")
    modules.install()
    inspection.install()
    forking.install()
    change_libraries()
    sys.breakpointhook = _breakpoint
    sys.excepthook = _on_exception
    threading.excepthook = _on_thread_exception
    warnings.formatwarning = _format_warning


def change_libraries() -> None:
    """Changes libraries, now or when they are imported, so that they suit a place without a person and without a system's fonts."""
    for module in (drawn, fonts, style, open_document):
        module.install()

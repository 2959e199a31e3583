"""Describes an exception for a model: the user's frames with their lines, one line for the library, no secrets."""

from __future__ import annotations

import builtins
import itertools
import os
import sys
import traceback
from traceback import FrameSummary, StackSummary, TracebackException
from types import CodeType, TracebackType
from typing import Any

from cellblock_kernel.cell import hints, redact, source
from cellblock_kernel.library.connector_errors import ConnectorError
from cellblock_kernel.outputs.limits import cut, cut_middle, many

_FRAMES_KEPT = 50
_CHAIN_DEPTH = 10
_GROUP_WIDTH = 15
_MESSAGE_CHARS = 10_000
_NOTE = 2000
_LINE = 500
_NAME = 200

# The whole package, which contains this folder.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.dirname(os.path.abspath(traceback.__file__)) + os.sep
# Directories of requirement layers; `configure` adds to them.
layers: list[str] = []

# Python has groups since 3.11.
_GROUPS: Any = getattr(builtins, "BaseExceptionGroup", ())
# Without it, the whole chain of causes is read, too; Python has it since 3.10.
_COMPACT: dict[str, Any] = {"compact": True} if sys.version_info >= (3, 10) else {}

_name_of = type.__dict__["__name__"].__get__
_module_of = type.__dict__["__module__"].__get__

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


class Failure:
    """The description of an exception."""

    __slots__ = ("errno", "exception", "exit_code", "frames", "line", "message", "notes", "traceback")

    def __init__(self, exception: str, message: str, traceback: str, notes: list[str] | None = None) -> None:
        self.exception = exception
        self.message = message
        self.traceback = traceback
        self.notes: list[str] = [] if notes is None else notes
        self.frames: list[dict[str, Any]] = []
        self.line: int | None = None
        self.errno: int | None = None
        self.exit_code: int | None = None

    def output(self) -> dict[str, Any]:
        """The `exception` output."""
        header: dict[str, Any] = {
            "type": "exception",
            "name": None,
            "exception": self.exception,
            "message": self.message,
            "traceback": self.traceback,
            "frames": self.frames,
            "notes": self.notes,
        }
        if self.line is not None:
            header["line"] = self.line
        return header

    def error(self) -> dict[str, Any]:
        """The `error` of a `done` frame."""
        error: dict[str, Any] = {"type": self.exception, "message": self.message}
        for key in ("errno", "line", "exit_code"):
            value = getattr(self, key)
            if value is not None:
                error[key] = value
        return error


class CellFailure(Exception):
    """A cell of another language failed; described in the terms of that language."""

    def __init__(
        self, kind: str, message: str, trace: str | None = None, line: int | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.trace = f"{message}\n" if trace is None else trace
        self.line = line
        self.status = status

    def describe(self, chars: int) -> Failure:
        """Describes it within a number of characters."""
        message = cut(redact.message(str(self)), min(chars, _MESSAGE_CHARS))[0]
        failure = Failure(self.kind[:_NAME], message, cut_middle(redact.message(self.trace), chars))
        failure.line, failure.exit_code = self.line, self.status
        return failure


def type_name(kind: type) -> str:
    """Returns the name of a class, even if its metaclass overrides it."""
    return str(_name_of(kind))[:_NAME]


def module_name(kind: type) -> str:
    """Returns the module of a class, or nothing if it is not a string."""
    try:
        module = _module_of(kind)
    except AttributeError:
        return ""
    return module if isinstance(module, str) else ""


def safe_str(value: object) -> str:
    """Returns the text of an exception, or why it has none."""
    try:
        text = str(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<the exception's __str__ raised {type_name(type(error))}>"
    return text


def describe(error: BaseException, name: str | None, chars: int) -> Failure:
    """Describes an exception that a cell raised; `name` is the cell's file name."""
    if isinstance(error, CellFailure):
        return error.describe(chars)
    source.restore()
    kind = type_name(type(error))
    message = ""
    try:
        message = cut(_message(error), min(chars, _MESSAGE_CHARS))[0]
        entries = _user_frames(error.__traceback__)[0]
        # The code's frames are not at fault.
        alone = isinstance(error, ConnectorError)
        text = "".join(_last_lines(error) if alone else _format(error, set(), 0))
        notes = [redact.message(note) for note in _notes(error)]
        hint = hints.of(error)
        if hint is not None:
            notes.append(hint)
            text += f"note: {hint}\n"
    except KeyboardInterrupt:
        raise
    except BaseException as broken:
        note = f"<the traceback can not be shown: {type_name(type(broken))}>"
        return Failure(kind, message or note, f"{note}\n{kind}: {message}\n")
    failure = Failure(kind, message, cut_middle(text, chars), notes=notes)
    for entry in entries[-_FRAMES_KEPT:]:
        failure.frames.append(
            {
                "file": entry.filename,
                "line": entry.lineno,
                "function": entry.name[:_NAME],
                "source": redact.source((entry.line or "")[:_LINE]),
            }
        )
    failure.line = _line(error, entries, name)
    if isinstance(error, OSError) and isinstance(error.errno, int):
        failure.errno = error.errno
    return failure


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and isinstance(error.msg, str):
        return redact.message(error.msg)
    if type(error) is MemoryError and not error.args:
        return "out of memory: work on less data at a time, or delete variables that are not needed"
    return redact.message(safe_str(error))


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [str(note)[:_NOTE] for note in notes[:20]] if isinstance(notes, (list, tuple)) else []


def _line(error: BaseException, entries: list[FrameSummary], name: str | None) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == name and isinstance(error.lineno, int):
        return error.lineno
    own = [entry.lineno for entry in entries if entry.filename == name]
    return own[-1] if own else None


def is_user_file(name: str) -> bool:
    """Returns whether a file is the user's: a cell, or a module outside every library."""
    if source.known(name):
        return True
    if not name.startswith("/") or name.startswith((_OWN, _STDLIB)):
        # Modules have absolute paths; `<string>` and the sources of compiled extensions do not.
        return False
    if "/site-packages/" in name or "/dist-packages/" in name or "importlib" in name:
        return False
    prefixes = (sys.prefix + os.sep, sys.base_prefix + os.sep, *(layer.rstrip("/") + "/" for layer in layers))
    return not name.startswith(prefixes)


def short_path(name: str) -> str:
    """The path of a library's file as one would import it."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in name:
            return name.rsplit(mark, 1)[1]
    for prefix in (_STDLIB, *(layer.rstrip("/") + "/" for layer in layers)):
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name if name.startswith("<") else os.path.basename(name)


def _user_frames(trace: TracebackType | None) -> tuple[list[FrameSummary], str | None]:
    """Splits a traceback into the user's frames and, if the error came from deeper, the innermost library
    location."""
    entries: list[FrameSummary] = []
    deeper: tuple[str, int | None, str] | None = None
    count = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename
        if is_user_file(name):
            entries.append(_summary(code, trace))
            deeper, count = None, 0
        elif not name.startswith(_OWN):
            deeper = (name, trace.tb_lineno, code.co_name)
            count += 1
        trace = trace.tb_next
    if deeper is None or not entries:
        return entries, None
    frames = "1 library frame" if count == 1 else f"{count} library frames"
    return entries, f"  … {frames}, the last: {short_path(deeper[0])}, line {deeper[1]}, in {deeper[2]}\n"


def _summary(code: CodeType, trace: TracebackType) -> FrameSummary:
    # Python knows columns since 3.11.
    positions = code.co_positions() if hasattr(code, "co_positions") else ()
    line, end_line, column, end_column = next(itertools.islice(positions, trace.tb_lasti // 2, None), (None, None, None, None))
    if line is None or line != trace.tb_lineno:
        return FrameSummary(code.co_filename, trace.tb_lineno, code.co_name, lookup_line=False)
    return FrameSummary(
        code.co_filename,
        trace.tb_lineno,
        code.co_name,
        lookup_line=False,
        end_lineno=end_line,
        colno=column,
        end_colno=end_column,
    )


def _format(error: BaseException, seen: set[int], depth: int) -> list[str]:
    seen.add(id(error))
    text: list[str] = []
    before = error.__cause__ if error.__cause__ is not None else error.__context__
    joint = _CAUSE if error.__cause__ is not None else _CONTEXT
    # Of a program that ends itself, as argparse does for a wrong argument, its own words are enough.
    shown = error.__cause__ is not None or not (error.__suppress_context__ or isinstance(error, SystemExit))
    if before is not None and shown and id(before) not in seen and depth < _CHAIN_DEPTH and not _repeats(error, before):
        text += [*_format(before, seen, depth + 1), joint]
    entries, deeper = _user_frames(error.__traceback__)
    if entries:
        text.append("Traceback (most recent call last):\n")
        text += _stack(entries)
        if deeper:
            text.append(deeper)
    text += _last_lines(error)
    if isinstance(error, _GROUPS) and depth < _CHAIN_DEPTH:
        text += _group(error, seen, depth)
    return text


def _repeats(error: BaseException, before: BaseException) -> bool:
    """Returns whether an exception inside a library was only raised again, which adds nothing for the user."""
    same = type(error) is type(before) and safe_str(error) == safe_str(before)
    return same and not _user_frames(before.__traceback__)[0]


def _stack(entries: list[FrameSummary]) -> list[str]:
    half = _FRAMES_KEPT // 2
    parts = [entries] if len(entries) <= _FRAMES_KEPT else [entries[:half], entries[-half:]]
    text: list[str] = []
    for number, part in enumerate(parts):
        if number:
            text.append(f"  … {many(len(entries) - _FRAMES_KEPT, 'frame')} left out …\n")
        text += map(redact.source, StackSummary.from_list(part).format())
    return text


def _last_lines(error: BaseException) -> list[str]:
    summary = TracebackException(type(error), error, error.__traceback__, limit=0, **_COMPACT)
    lines = list(summary.format_exception_only())
    if isinstance(error, SyntaxError):
        # All but the message are lines of source.
        return [redact.source(line) for line in lines]
    return [redact.message(line) for line in lines]


def _group(group: Any, seen: set[int], depth: int) -> list[str]:
    text: list[str] = []
    for number, member in enumerate(group.exceptions[:_GROUP_WIDTH], 1):
        text.append(f"  ---- {number} of {len(group.exceptions)} ----\n")
        if id(member) in seen:
            continue
        for part in _format(member, seen, depth + 1):
            text += ["  " + line for line in part.splitlines(keepends=True)]
    if len(group.exceptions) > _GROUP_WIDTH:
        text.append(f"  … and {many(len(group.exceptions) - _GROUP_WIDTH, 'more exception')}\n")
    return text

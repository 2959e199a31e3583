"""Turns the text of a cell into code objects, and keeps the text for tracebacks and `inspect.getsource`."""

from __future__ import annotations

import re
from ast import Expr, Expression, Module, Name, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST, increment_lineno
from linecache import cache as _linecache
from types import CodeType

from cellblock_kernel.notebook.translate import translate

_parse_flags = PyCF_ONLY_AST | PyCF_ALLOW_TOP_LEVEL_AWAIT
_compile = compile

# The lines of every named piece of code; linecache alone is not enough, as a cell may clear it.
_sources: dict[str, list[str]] = {}


class Program:
    """A compiled cell: its statements, and its trailing expression if that is displayed."""

    __slots__ = ("body", "last", "last_name")

    def __init__(self, body: CodeType | None, last: CodeType | None, last_name: str | None) -> None:
        self.body = body
        self.last = last
        self.last_name = last_name


def remember(name: str, code: str, line: int) -> None:
    """Keeps the text of a cell under its name; a later cell of the same file adds to it."""
    lines = code.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if line > 1:
        known = _sources.get(name, [])
        before = known[: line - 1]
        before += ["\n"] * (line - 1 - len(before))
        lines = before + lines + known[line - 1 + len(lines) :]
    _sources[name] = lines
    _linecache[name] = (0, None, lines, name)


def known(name: str) -> bool:
    """Returns whether a file name is a cell's."""
    return name in _sources


def file_of(kind: type) -> str | None:
    """Returns the file name of the cell that defines a class: that of its methods, else the last one with a
    class of its name."""
    for value in vars(kind).values():
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        # Python's code has names with those of their classes since 3.11.
        qualified = getattr(code, "co_qualname", f"{kind.__qualname__}.")
        if isinstance(code, CodeType) and code.co_filename in _sources and qualified.startswith(f"{kind.__qualname__}."):
            return code.co_filename
    definition = re.compile(rf"[ \t]*class[ \t]+{re.escape(kind.__name__)}\b")
    return next((name for name in reversed(_sources) if any(map(definition.match, _sources[name]))), None)


def restore() -> None:
    """Restores the cells' lines in linecache, for a traceback that is about to be printed."""
    for name, lines in _sources.items():
        if name not in _linecache:
            _linecache[name] = (0, None, lines, name)


def parse(code: str, name: str, line: int) -> Module:
    """Parses a cell; errors carry the line numbers of the user's file."""

    def parsed(text: str) -> Module:
        tree = _compile(text, name, "exec", _parse_flags, True)
        assert isinstance(tree, Module)
        return tree

    try:
        try:
            return parsed(code)
        except SyntaxError as error:
            return translate(code, parsed, error)
    except SyntaxError as error:
        _move(error, line)
        raise
    except UnicodeEncodeError as error:
        raise SyntaxError(
            f"the code holds the character U+{ord(code[error.start]):04X}, which is half of a pair and no text; "
            "send the code as valid UTF-8"
        ) from None
    except ValueError as error:
        # Python 3.11 raises a plain ValueError for null bytes.
        raise SyntaxError(str(error)) from None
    except (MemoryError, RecursionError):
        raise SyntaxError("the code is nested too deeply to be parsed; build deep structures in a loop") from None


def compile_cell(tree: Module, code: str, name: str, line: int, echo: bool) -> Program:
    """Compiles a parsed cell, without its trailing expression if that is displayed."""
    body = tree.body
    last = body[-1] if body else None
    shown = None
    if echo and isinstance(last, Expr) and not _muted(last, code):
        shown = Expression(last.value)
        body = body[:-1]
        tree = Module(body, [])
    if line != 1:
        increment_lineno(tree, line - 1)
        if shown is not None:
            increment_lineno(shown, line - 1)
    try:
        return Program(
            _compile(tree, name, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, True) if body else None,
            _compile(shown, name, "eval", PyCF_ALLOW_TOP_LEVEL_AWAIT, True) if shown is not None else None,
            shown.body.id if shown is not None and isinstance(shown.body, Name) else None,
        )
    except (MemoryError, RecursionError):
        raise SyntaxError("the code is nested too deeply to be compiled; build deep structures in a loop") from None


def compile_expression(code: str, name: str, line: int) -> tuple[Program, Module]:
    """Compiles one expression; anything else is an error that says so."""
    tree = parse(code.strip(), name, line)
    if len(tree.body) != 1 or not isinstance(tree.body[0], Expr):
        raise SyntaxError("expected one expression, got statements; run statements as a cell")
    return compile_cell(Module([Expr(tree.body[0].value)], []), code.strip(), name, line, True), tree


def _muted(last: Expr, code: str) -> bool:
    if ";" not in code:
        return False
    if last.end_lineno is None or last.end_col_offset is None:
        # The expression was made from a single parsed one and has no position of its own.
        return False
    # Offsets count UTF-8 bytes; Python ends lines at \n, \r\n and \r only.
    lines = code.encode("utf-8", "replace").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return lines[last.end_lineno - 1][last.end_col_offset :].lstrip().startswith(b";")


def _move(error: SyntaxError, line: int) -> None:
    """Moves a syntax error to the line of the user's file."""
    if line != 1 and error.lineno:
        error.lineno += line - 1
        # Python gives it since 3.10.
        if getattr(error, "end_lineno", None):
            error.end_lineno += line - 1

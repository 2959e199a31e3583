"""Turns a cell written for a notebook into Python: indented cells, `%magic`, `!command`, `name?`.

Only code that Python itself rejects gets here, so ordinary cells cost nothing and a `%` inside a string is
never a magic. If the parser fails on a line that looks like IPython syntax, the line is replaced by a call with
the same indentation, and the parser tries again. Lines keep their numbers, and Python code keeps its columns.
"""

from __future__ import annotations

import re
from ast import If, Module, increment_lineno, walk
from collections.abc import Callable
from typing import Any

from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.notebook.names import HARMLESS, PACKAGE_TOOLS

# Each replaced line makes the parser read the whole cell again.
_MOST = 200
_SHELL = "get_ipython()"

_MAGIC = pattern(r"%(?P<name>[A-Za-z_]\w*)[ \t]*(?P<rest>.*)", re.DOTALL)
_COMMAND = pattern(r"!!?[ \t]*(?P<command>\S.*)", re.DOTALL)
_INSTALL = pattern(rf"(?:{'|'.join(PACKAGE_TOOLS)})[ \t]+(?:install|list|freeze)\b.*", re.DOTALL)
_HELP = pattern(r"\?{0,2}(?P<name>[A-Za-z_][\w.]*)\?{0,2}")
_ASSIGNED = pattern(r"(?P<target>[A-Za-z_][\w.\[\]'\", *]*?)[ \t]*=[ \t]*(?P<value>[!%][^=].*)", re.DOTALL)
_CELL_MAGIC = pattern(r"%%(?P<name>[A-Za-z_!]\w*)[ \t]*(?P<rest>.*)")
# Cell magics whose body is ordinary Python.
_TIMED = "time"

Parse = Callable[[str], Module]


def translate(code: str, parse: Parse, error: SyntaxError) -> Module:
    """Parses a cell that Python has rejected; raises the remaining error, with the line of the user's code."""
    return _Cell(code, parse, error).read()


class _Cell:
    def __init__(self, code: str, parse: Parse, error: SyntaxError) -> None:
        self._lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._parse = parse
        # Python's own error about the original cell.
        self._error = error
        # Replaced lines by number, with the columns between which they had text.
        self._replaced: dict[int, tuple[int, int]] = {}
        self._wrapped = False

    def read(self) -> Module:
        """Replaces line after line until the parser accepts the cell, or fails on something else."""
        self._head()
        error = self._error
        while len(self._replaced) < _MOST:
            try:
                return self._finished(self._parsed())
            except SyntaxError as found:
                error = self._moved(found) if found is not self._error else found
            line = error.lineno or 0
            if not self._wrapped and isinstance(error, IndentationError) and self._is_first(line):
                self._wrapped = True
            elif not self._replace(line):
                break
        # A line that only looked like a magic is shown in its original form.
        raise self._error if error.lineno in self._replaced else error from None

    def _parsed(self) -> Module:
        text = "\n".join(self._lines)
        if not self._wrapped:
            return self._parse(text)
        # Below an `if`, the code may be indented, and every column stays.
        tree = self._parse(f"if 1:\n{text}")
        first = tree.body[0]
        if not isinstance(first, If) or first.orelse:
            raise self._error
        increment_lineno(tree, -1)
        return Module(first.body + tree.body[1:], [])

    def _finished(self, tree: Module) -> Module:
        """Gives the code that replaces a notebook line the position of that line, for the arrows of tracebacks."""
        for node in walk(tree) if self._replaced else ():
            number = getattr(node, "lineno", 0)
            if number in self._replaced:
                place: Any = node
                place.col_offset, place.end_col_offset = self._replaced[number]
                place.end_lineno = number
        return tree

    def _moved(self, error: SyntaxError) -> SyntaxError:
        if self._wrapped and error.lineno:
            error.lineno -= 1
            if error.end_lineno:
                error.end_lineno -= 1
        return error

    def _first(self) -> int:
        """Returns the number of the first line of code."""
        numbers = (number for number, line in enumerate(self._lines, 1) if line.strip() and not line.lstrip().startswith("#"))
        return next(numbers, 0)

    def _is_first(self, line: int) -> bool:
        return line == self._first() and self._lines[line - 1][:1] in (" ", "\t")

    def _head(self) -> None:
        """Replaces a cell magic, and its body unless that is Python."""
        number = self._first()
        found = _CELL_MAGIC.fullmatch(self._lines[number - 1].strip()) if number else None
        if found is None:
            return
        name, rest = found["name"], found["rest"].strip()
        if name == _TIMED:
            self._put(number, number, f"{_SHELL}.start_clock()")
        else:
            body = "\n".join(self._lines[number:])
            self._put(number, len(self._lines), f"{_SHELL}.run_cell_magic({name!r}, {rest!r}, {body!r})")

    def _replace(self, number: int) -> bool:
        """Replaces a line if it is IPython syntax."""
        if not 0 < number <= len(self._lines) or number in self._replaced:
            return False
        last = number
        text = self._lines[number - 1].strip()
        while text.endswith("\\") and last < len(self._lines):
            last += 1
            text = text[:-1] + self._lines[last - 1].strip()
        call = _call(text)
        if call is None:
            return False
        self._put(number, last, call)
        return True

    def _put(self, number: int, last: int, call: str) -> None:
        line = self._lines[number - 1]
        indent = line[: len(line) - len(line.lstrip())]
        self._replaced[number] = (len(indent), len(line.encode("utf-8", "replace")))
        self._lines[number - 1] = indent + call
        self._lines[number:last] = [""] * (last - number)


def _call(text: str) -> str | None:
    """Returns the Python code for a line of a notebook."""
    found = _ASSIGNED.fullmatch(text)
    if found is not None:
        value = found["value"]
        command = _COMMAND.fullmatch(value)
        call = f"{_SHELL}.getoutput({command['command']!r})" if command else _call(value)
        return call and f"{found['target']} = {call}"
    found = _MAGIC.fullmatch(text)
    if found is not None:
        if found["name"] in HARMLESS:
            return "pass"
        return f"{_SHELL}.run_line_magic({found['name']!r}, {found['rest'].strip()!r})"
    found = _COMMAND.fullmatch(text)
    if found is not None:
        return f"{_SHELL}.system({found['command']!r})"
    if _INSTALL.fullmatch(text):
        return f"{_SHELL}.system({text!r})"
    found = _HELP.fullmatch(text)
    if found is not None and "?" in text:
        return f"{_SHELL}.explain({found['name']!r})"
    return None

"""Reports which names a cell bound, deleted, changed and read, from which the host derives the origin of variables.

The report may name too much, never too little of what the cell's own code says: a name that is bound in a branch counts as bound.
What code does behind its own text is seen by comparing the objects before and after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

# Of each kind. Together they fit in the header of a message.
_NAMES = 2000
_CHARS = 200
_unstamped = (ModuleType, FunctionType, BuiltinFunctionType)
_noted: set[str] = set()


def note_read(names: Iterable[str]) -> None:
    """Counts variables as read in this cell that its code does not name, such as tables of a query."""
    _noted.update(names)


class NameReport:
    """Compares the namespace after a cell with that before it."""

    def __init__(self, names: dict[str, Any], tree: ast.AST, codes: tuple[CodeType | None, ...], store: bool) -> None:
        self._names = names
        self._store = store
        self._written = _written_through(tree)
        self._bound: set[str] = set()
        self._read: set[str] = set()
        _noted.clear()
        self._functions: set[CodeType] = set()
        for code in codes:
            if code is not None:
                self._scan(code, top=True)
        # Not the objects: a large one would outlive its name.
        self._before = {name: id(value) for name, value in names.items()}

    def end(self, base: dict[str, Any]) -> dict[str, list[str]]:
        """Returns the names of user variables, by what the cell did to them."""
        names, before = self._names, self._before
        self._follow_functions()
        self._read |= _noted
        rebound = {name for name, value in names.items() if before.get(name) != id(value)}
        assigned = self._bound & names.keys() | rebound
        report = {
            "assigned": {name for name in assigned if self._counts(name, base)} if self._store else set(),
            "deleted": before.keys() - names.keys() if self._store else set(),
            "changed": {name for name in self._written & before.keys() & names.keys() if self._counts(name, base)},
            "read": {name for name in self._read & (before.keys() | names.keys()) if self._counts(name, base)},
        }
        report["changed"] -= report["assigned"]
        report["created"] = report["assigned"] - before.keys()
        return {kind: sorted(filter(_is_name, found))[:_NAMES] for kind, found in report.items()}

    def _counts(self, name: str, base: dict[str, Any]) -> bool:
        """Tells whether a name is of a user's variable. A deleted one is not known and counts."""
        value = self._names.get(name, self)
        return not isinstance(value, _unstamped) and base.get(name, self._before) is not value

    def _scan(self, code: CodeType, top: bool) -> None:
        """Collects the global names that code binds and reads."""
        from dis import get_instructions

        for instruction in get_instructions(code):
            operation, name = instruction.opname, instruction.argval
            if operation == "STORE_GLOBAL" or (top and operation == "STORE_NAME"):
                self._bound.add(name)
            elif operation in ("LOAD_NAME", "LOAD_GLOBAL"):
                self._read.add(name)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._scan(constant, top=False)

    def _follow_functions(self) -> None:
        """Adds what functions and classes of earlier cells read and bind, if the cell names them."""
        waiting = list(self._read)
        while waiting:
            value = self._names.get(waiting.pop())
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            for member in members:
                function = getattr(member, "__func__", member)
                if not isinstance(function, FunctionType) or function.__globals__.get("__name__") != "__main__":
                    continue
                if function.__code__ not in self._functions:
                    self._functions.add(function.__code__)
                    known = set(self._read)
                    self._scan(function.__code__, top=False)
                    waiting.extend(self._read - known)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= _CHARS and name.isidentifier() and not name.startswith("_")


def _written_through(tree: ast.AST) -> set[str]:
    """Returns the names whose objects a cell's statements change in place, as in `df["x"] = 1` or `rows.append(1)`."""
    written = set()
    for node in ast.walk(tree):
        target: Any = None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            # A method whose result nobody uses is called for what it does.
            target = node.value.func if isinstance(node.value.func, ast.Attribute) else None
        elif isinstance(node, ast.AugAssign):
            target = node.target
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            written.add(target.id)
    return written

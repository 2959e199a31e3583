"""Rejects code by rules on its syntax tree, before any of it runs.

The guard gives clear errors early. It is not a security boundary: the sandbox is, and a determined cell gets
past any rule on syntax.

`standard` rejects code that would read the environment or start processes: `os.environ` and `os.environb` (also through an alias,
a from-import, `getattr` or `vars`), calls of `os.getenv`, any use of `subprocess`, and texts that name a file like
`/proc/self/environ`, also in pieces.

`strict` also rejects names and modules that bypass the language's limits: the names in `STRICT_NAMES`, imports of the modules in
`STRICT_MODULES`, the attributes in `_STRICT_ATTRIBUTES`. Cells then have fewer builtins, too: `restricted.py`.
"""

import ast
import re
from ast import (
    AST,
    Add,
    Attribute,
    BinOp,
    Call,
    Constant,
    Div,
    FormattedValue,
    Import,
    ImportFrom,
    JoinedStr,
    Name,
    Subscript,
    walk,
)
from typing import Any

_ENVIRON = "os.environ access is blocked in agent code (secrets are not in scope)"
_GETENV = "os.getenv is blocked in agent code (secrets are not in scope)"
_PROC = "reading a process's environment from /proc is blocked in agent code (secrets are not in scope)"
# A file below /proc, not any path with these words: `data/processed/environment.csv` is ordinary.
_PROC_FOLDER, _ENVIRON_FILE = re.compile(r"(?<!\w)/proc(?=/)"), re.compile(r"/environ\b")
# What to do instead.
STRICT_NAMES = {
    "eval": "write the expression itself, or read data with json.loads or ast.literal_eval",
    "exec": "write the statements in the cell itself",
    "compile": "write the code in the cell itself; re.compile is allowed",
    "__import__": "use an import statement",
    "__builtins__": "call a builtin by its own name",
    "breakpoint": "print the values instead",
    "get_ipython": "write plain Python instead of magics",
    "input": "nobody can type here; assign the value in the code",
}
STRICT_MODULES = frozenset({
    "_ctypes", "_posixsubprocess", "_socket", "builtins", "cffi", "code", "codeop", "ctypes", "gc", "importlib", "multiprocessing",
    "pty", "runpy", "signal", "socket", "subprocess", "cellblock_kernel",
})  # fmt: skip
_STRICT_ATTRIBUTES = frozenset({
    "__bases__", "__base__", "__builtins__", "__closure__", "__code__", "__globals__", "__loader__", "__mro__", "__self__",
    "__subclasses__", "__import__", "f_back", "f_builtins", "f_globals", "f_locals", "gi_frame", "tb_frame",
})  # fmt: skip
_STRICT_OS = frozenset({"system", "popen", "fork", "forkpty", "kill", "killpg", "_exit", "posix_spawn", "posix_spawnp"})

_SHELL_MAGICS = frozenset({"bash", "cat", "ls", "mkdir", "script", "sh", "sx", "system"})

_FINDINGS = 50
_typed = (Attribute, BinOp, Call, Constant, Import, ImportFrom, JoinedStr, Name, Subscript)
# Calls that put paths together.
_JOINS = frozenset({"Path", "PosixPath", "PurePath", "PurePosixPath", "join", "joinpath"})
# Levels of additions and the like that are followed; text that is nested deeper is not looked at.
_DEPTH = 40


class Rejection(Exception):
    """The guard rejected a cell."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        super().__init__("; ".join(f"line {one['line']}: {one['message']}" for one in found))
        self.found = found


def check(tree: ast.AST, level: str, line: int) -> None:
    """Raises a `Rejection` with everything that a level forbids; `line` is the number of the first line."""
    if level == "off":
        return
    nodes = [node for node in walk(tree) if isinstance(node, _typed)]
    rules = _Rules(nodes, level == "strict")
    found: list[dict[str, Any]] = []
    for node in nodes:
        for rule, message in rules.of(node) if len(found) < _FINDINGS else ():
            one = {"rule": rule, "line": getattr(node, "lineno", 1) + line - 1, "message": message}
            if one not in found:
                found.append(one)
    if found:
        raise Rejection(sorted(found, key=lambda one: one["line"]))


def only_python(language: str, level: str, line: int) -> None:
    """Raises a `Rejection` of another language, unless everything is allowed: the rules know only Python."""
    if level != "off":
        why = "are not allowed in this session, whose code is checked before it runs; use Python"
        raise wrong_language(language, line, why)


def wrong_language(language: str, line: int, why: str) -> Rejection:
    """Returns the rejection of a cell for its language."""
    return Rejection([{"rule": "language", "line": line, "message": f"`{language}` cells {why}"}])


class _Rules:
    def __init__(self, nodes: list[Any], strict: bool) -> None:
        self._strict = strict
        self._os = {"os", "posix"}
        self._subprocess = {"subprocess"}
        for node in nodes:
            if isinstance(node, Import):
                for alias in node.names:
                    if alias.asname and alias.name in ("os", "posix"):
                        self._os.add(alias.asname)
                    elif alias.asname and alias.name == "subprocess":
                        self._subprocess.add(alias.asname)

    def of(self, node: Any) -> list[tuple[str, str]]:
        """Returns the rules that a node breaks."""
        found = self._standard(node)
        return found + self._strictly(node) if self._strict else found

    def _standard(self, node: Any) -> list[tuple[str, str]]:
        if isinstance(node, Attribute):
            if self._is_os(node.value) and node.attr in ("environ", "environb"):
                return [("os.environ", _ENVIRON)]
            if _named(node.value, self._subprocess):
                return [("subprocess", f"subprocess.{node.attr} is blocked in agent code")]
        elif isinstance(node, ImportFrom):
            return self._from_import(node)
        elif isinstance(node, Call):
            return self._call(node) or _proc(node)
        elif isinstance(node, Subscript):
            return self._subscript(node)
        elif isinstance(node, (Constant, JoinedStr, BinOp)):
            return _proc(node)
        return []

    def _from_import(self, node: ImportFrom) -> list[tuple[str, str]]:
        found = []
        for alias in node.names:
            if node.module in ("os", "posix") and alias.name in ("environ", "environb"):
                found.append(("os.environ", _ENVIRON))
            elif node.module in ("os", "posix") and alias.name in ("getenv", "getenvb"):
                found.append(("os.getenv", _GETENV))
            elif node.module == "subprocess":
                found.append(("subprocess", f"subprocess.{alias.name} is blocked in agent code"))
        return found

    def _call(self, node: Call) -> list[tuple[str, str]]:
        target = node.func
        if isinstance(target, Attribute) and isinstance(target.value, Call) and _named(target.value.func, {"get_ipython"}):
            return self._magic(target.attr, node)
        if isinstance(target, Attribute) and self._is_os(target.value) and target.attr in ("getenv", "getenvb"):
            return [("os.getenv", _GETENV)]
        if isinstance(target, Name) and target.id == "getattr" and len(node.args) >= 2:
            name = node.args[1].value if isinstance(node.args[1], Constant) else None
            if self._is_os(node.args[0]) and name in ("environ", "environb"):
                return [("os.environ", _ENVIRON)]
            if self._is_os(node.args[0]) and name in ("getenv", "getenvb"):
                return [("os.getenv", _GETENV)]
            if _named(node.args[0], self._subprocess):
                return [("subprocess", f"subprocess.{name if isinstance(name, str) else 'getattr'} is blocked in agent code")]
        return []

    @staticmethod
    def _magic(method: str, node: Call) -> list[tuple[str, str]]:
        """`!command` and magics, in their translated form."""
        first = node.args[0].value if node.args and isinstance(node.args[0], Constant) else ""
        if method in ("system", "getoutput") or (method.startswith("run_") and first in _SHELL_MAGICS):
            return [("subprocess", "shell commands are blocked in agent code")]
        if method.startswith("run_") and first in ("env", "set_env"):
            return [("os.environ", _ENVIRON)]
        return []

    def _subscript(self, node: Subscript) -> list[tuple[str, str]]:
        """`vars(os)["environ"]` and `os.__dict__["environ"]`."""
        key = node.slice.value if isinstance(node.slice, Constant) else None
        if key not in ("environ", "environb"):
            return []
        value = node.value
        if isinstance(value, Attribute) and value.attr == "__dict__" and self._is_os(value.value):
            return [("os.environ", _ENVIRON)]
        if isinstance(value, Call) and _named(value.func, {"vars"}) and value.args and self._is_os(value.args[0]):
            return [("os.environ", _ENVIRON)]
        return []

    def _is_os(self, node: AST) -> bool:
        """The module by its name, as `x.os`, or from `sys.modules["os"]` and `__import__("os")`."""
        if isinstance(node, Attribute):
            return node.attr == "os"
        if isinstance(node, Subscript):
            return isinstance(node.slice, Constant) and node.slice.value == "os"
        if isinstance(node, Call):
            first = node.args[0] if node.args else None
            return isinstance(first, Constant) and first.value == "os"
        return _named(node, self._os)

    def _strictly(self, node: Any) -> list[tuple[str, str]]:
        if isinstance(node, Name) and node.id in STRICT_NAMES:
            return [("strict.builtin", blocked(node.id))]
        if isinstance(node, Attribute):
            if node.attr in _STRICT_ATTRIBUTES:
                return [("strict.attribute", blocked_attribute(node.attr))]
            if self._is_os(node.value) and (node.attr in _STRICT_OS or node.attr.startswith(("exec", "spawn"))):
                return [("strict.process", f"os.{node.attr} is blocked in strict mode; do the work in Python")]
        if isinstance(node, Call) and _named(node.func, {"getattr"}) and len(node.args) >= 2:
            name = node.args[1].value if isinstance(node.args[1], Constant) else None
            if name in _STRICT_ATTRIBUTES:
                return [("strict.attribute", blocked_attribute(str(name)))]
        modules: list[str] = []
        if isinstance(node, Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ImportFrom) and node.module:
            modules = [node.module]
        elif isinstance(node, Subscript) and isinstance(node.slice, Constant) and isinstance(node.slice.value, str):
            target = node.value
            if (isinstance(target, Attribute) and target.attr == "modules") or _named(target, {"modules"}):
                modules = [node.slice.value]
        return [("strict.import", blocked_import(module)) for module in modules if module.split(".")[0] in STRICT_MODULES]


def blocked(name: str) -> str:
    """Says that a builtin is blocked, and what to do instead."""
    return f"{name} is blocked in strict mode; {STRICT_NAMES[name]}"


def blocked_import(module: str) -> str:
    """Says that a module is blocked."""
    return f"import of {module} is blocked in strict mode; do without it"


def blocked_attribute(name: str) -> str:
    """Says that an attribute is blocked."""
    return f"attribute {name} is blocked in strict mode; do without the object's internals"


def _proc(node: AST) -> list[tuple[str, str]]:
    text = _text(node, _DEPTH)
    folder = _PROC_FOLDER.search(text)
    return [("proc.environ", _PROC)] if folder and _ENVIRON_FILE.search(text, folder.end()) else []


def _text(node: AST, depth: int) -> str:
    """Returns the text that an expression puts together, with `x` for each part that only a run would know."""
    if isinstance(node, Constant):
        value = node.value
        return value if isinstance(value, str) else value.decode("latin-1") if isinstance(value, bytes) else "x"
    if depth == 0:
        return "x"
    if isinstance(node, JoinedStr):
        return "".join([_text(piece, depth - 1) for piece in node.values])
    if isinstance(node, FormattedValue):
        return _text(node.value, depth - 1)
    if isinstance(node, BinOp) and isinstance(node.op, (Add, Div)):
        between = "" if isinstance(node.op, Add) else "/"
        return _text(node.left, depth - 1) + between + _text(node.right, depth - 1)
    if isinstance(node, Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        if name in _JOINS:
            first = [node.func.value] if name == "joinpath" and isinstance(node.func, Attribute) else []
            return "/".join([_text(piece, depth - 1) for piece in first + node.args])
    return "x"


def _named(node: AST, names: set[str]) -> bool:
    return isinstance(node, Name) and node.id in names

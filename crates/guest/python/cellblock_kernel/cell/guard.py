"""Rejects code by rules on its syntax tree, before any of it runs.

The guard gives clear errors early. It is not a security boundary: the sandbox is, and a determined cell gets
past any rule on syntax.

`standard` rejects code that would read the environment or start processes: `os.environ` and `os.environb` (also through an alias,
a from-import, `getattr` or `vars`), calls of `os.getenv`, any use of `subprocess`, and strings that name a file like
`/proc/self/environ`.

`strict` also rejects names and modules that bypass the language's limits: `eval`, `exec`, `compile`, `__import__`, `breakpoint`,
`input`; imports of the modules in `_STRICT_MODULES`; the attributes in `_STRICT_ATTRIBUTES`. Rules, not a smaller set of
builtins, so that `class`, `super` and libraries keep working.
"""

import ast
import re
from ast import AST, Attribute, Call, Constant, Import, ImportFrom, Name, Subscript, walk
from typing import Any

_ENVIRON = "os.environ access is blocked in agent code (secrets are not in scope)"
_GETENV = "os.getenv is blocked in agent code (secrets are not in scope)"
_PROC = "reading a process's environment from /proc is blocked in agent code (secrets are not in scope)"
# A file below /proc, not any path with these words: `data/processed/environment.csv` is ordinary.
_PROC_ENVIRON = re.compile(r"(?<!\w)/proc(?:/|$)(?:.*/)?environ\b", re.DOTALL)
_STRICT_NAMES = frozenset({"eval", "exec", "compile", "__import__", "__builtins__", "breakpoint", "get_ipython", "input"})
_STRICT_MODULES = frozenset({
    "_ctypes", "_posixsubprocess", "_socket", "builtins", "cffi", "code", "codeop", "ctypes", "gc", "importlib", "multiprocessing",
    "pty", "runpy", "signal", "socket", "subprocess", "cellblock_kernel",
})  # fmt: skip
_STRICT_ATTRIBUTES = frozenset({
    "__bases__", "__base__", "__builtins__", "__closure__", "__code__", "__globals__", "__loader__", "__mro__", "__subclasses__",
    "__import__", "f_back", "f_builtins", "f_globals", "f_locals", "gi_frame", "tb_frame",
})  # fmt: skip
_STRICT_OS = frozenset({"system", "popen", "fork", "forkpty", "kill", "killpg", "_exit", "posix_spawn", "posix_spawnp"})

_SHELL_MAGICS = frozenset({"bash", "cat", "ls", "mkdir", "script", "sh", "sx", "system"})

_FINDINGS = 50
_typed = (Attribute, Call, Constant, Import, ImportFrom, Name, Subscript)


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
            return self._call(node)
        elif isinstance(node, Subscript):
            return self._subscript(node)
        elif isinstance(node, Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if _PROC_ENVIRON.search(text):
                return [("proc.environ", _PROC)]
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
        if isinstance(node, Name) and node.id in _STRICT_NAMES:
            return [("strict.builtin", f"{node.id} is blocked in strict mode")]
        if isinstance(node, Attribute):
            if node.attr in _STRICT_ATTRIBUTES:
                return [("strict.attribute", f"attribute {node.attr} is blocked in strict mode")]
            if self._is_os(node.value) and (node.attr in _STRICT_OS or node.attr.startswith(("exec", "spawn"))):
                return [("strict.process", f"os.{node.attr} is blocked in strict mode")]
        modules: list[str] = []
        if isinstance(node, Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ImportFrom) and node.module:
            modules = [node.module]
        return [
            ("strict.import", f"import of {module} is blocked in strict mode")
            for module in modules
            if module.split(".")[0] in _STRICT_MODULES
        ]


def _named(node: AST, names: set[str]) -> bool:
    return isinstance(node, Name) and node.id in names

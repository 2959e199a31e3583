"""The object that `get_ipython()` returns to a cell: magics and shell commands in the session's namespace."""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from cellblock_kernel.cell import failure, source
from cellblock_kernel.cell.execution import Runner
from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.notebook.names import HARMLESS, PACKAGE_TOOLS, REQUIREMENTS

_INSTALL = pattern(rf"(?:{'|'.join(PACKAGE_TOOLS)})[ \t]+(?P<what>install|add|list|freeze)\b(?P<rest>[^|;&\n]*)")
_FILE_OPTION = pattern(r"(?:-r|-c|-n|--requirement|--constraint|-i|--index-url|--extra-index-url|-f)[ \t=]+\S+")
_EXPRESSION = pattern(r"\{([^{}]+)\}|\$(\w+)")
_REQUIREMENT = pattern(r"[A-Za-z0-9][\w.-]*")
_SHELLS = ("/bin/bash", "/bin/sh")
_clock, _processor = time.perf_counter, time.process_time

Names = dict[str, Any]


class UsageError(Exception):
    """A magic was not understood."""

    # The only name by which a model knows it.
    __module__ = "builtins"


class Shell:
    """Runs magics. Libraries never see it: they would expect a whole IPython."""

    def __init__(self) -> None:
        self._started: tuple[float, float] | None = None
        self._runner = Runner()
        # Names that every session has.
        self.base: Names = {}

    def use(self, runner: Runner, base: Names) -> None:
        """Connects it to a kernel."""
        self._runner, self.base = runner, base

    def __repr__(self) -> str:
        return "<get_ipython() of a sandbox>"

    @property
    def user_ns(self) -> Names:
        """Returns the names of the session."""
        return sys.modules["__main__"].__dict__

    def run_line_magic(self, name: str, line: str = "", _stack_depth: int = 1) -> Any:
        """Runs `%name line`."""
        if name in HARMLESS:
            return None
        return self._find("line", name)(self, line)

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        """Runs `%%name line` over the rest of a cell."""
        return self._find("cell", name)(self, line, cell)

    def magic(self, text: str) -> Any:
        """Runs a line magic in its written form, without the `%`."""
        name, _, rest = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest.strip())

    def _find(self, kind: str, name: str) -> Callable[..., Any]:
        magics = importlib.import_module("cellblock_kernel.notebook.magics")
        found = getattr(magics, f"{kind}_{name.lower()}", None)
        if found is None:
            marks = "%" if kind == "line" else "%%"
            known = ", ".join(marks + it.removeprefix(f"{kind}_") for it in dir(magics) if it.startswith(f"{kind}_"))
            raise UsageError(f"`{marks}{name}` is not available here; leave it out, or use plain Python. Available: {known}")
        return found  # type: ignore[no-any-return]

    def run(self, code: str, name: str = "<magic>") -> Any:
        """Runs code in the session's namespace, and returns the value of its last expression."""
        source.remember(name, code, 1)
        tree = source.parse(code, name, 1)
        return self._runner.run(source.compile_cell(tree, code, name, 1, True), self.user_ns)

    run_cell = ex = ev = run

    def system(self, command: str) -> None:
        """Runs a command; its output becomes the cell's."""
        # Not above, because few cells need it and it takes long to import.
        import subprocess

        command = self.expand(command)
        if self._package_tool(command):
            return
        sys.stdout.flush()
        sys.stderr.flush()
        ended = subprocess.run([_shell(), "-c", command], stdin=subprocess.DEVNULL, check=False)
        self.user_ns["_exit_code"] = ended.returncode

    def getoutput(self, command: str) -> list[str]:
        """Runs a command and returns the lines of its output."""
        import subprocess

        command = self.expand(command)
        ended = subprocess.run(
            [_shell(), "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace", check=False
        )
        self.user_ns["_exit_code"] = ended.returncode
        return ended.stdout.splitlines()

    def expand(self, text: str) -> str:
        """Replaces `{expression}` and `$name` by values of the session; other text stays unchanged."""

        def value(found: re.Match[str]) -> str:
            try:
                return str(eval(found[1] or found[2], self.user_ns)) if found[1] else str(self.user_ns[found[2]])
            except Exception:
                return found[0]

        return _EXPRESSION.sub(value, text)

    def _package_tool(self, command: str) -> bool:
        """Answers `pip install` and similar commands, which cannot work without a network."""
        found = _INSTALL.match(command.strip())
        if found is None:
            return False
        # Only here, because few cells need it and it takes long to import.
        from importlib import metadata

        if found["what"] in ("list", "freeze"):
            names = sorted((it.name, it.version) for it in metadata.distributions())
            print("\n".join(f"{name}=={version}" for name, version in names))
            return True
        present, absent = [], []
        words = [word for word in _FILE_OPTION.sub("", found["rest"]).split() if not word.startswith("-")]
        for name in [it[0] for word in words if (it := _REQUIREMENT.match(word.strip("'\"")))]:
            try:
                present.append(f"{name} {metadata.version(name)}")
            except metadata.PackageNotFoundError:
                absent.append(name)
        if present:
            print(f"already installed: {', '.join(present)}")
        if absent or not present:
            what = f"not installed: {', '.join(absent)}. " if absent else ""
            print(f"{what}Nothing can be installed from inside of the sandbox, which has no network: {REQUIREMENTS}")
        self.user_ns["_exit_code"] = 1 if absent else 0
        return True

    def explain(self, name: str) -> None:
        """Shows an object's signature and documentation."""
        import inspect

        try:
            value = eval(name, self.user_ns)
        except Exception:
            print(f"Object `{name}` not found.")
            return
        try:
            print(f"Signature: {name}{inspect.signature(value)}")
        except (TypeError, ValueError):
            print(f"Type: {failure.type_name(type(value))}")
        print(f"Docstring:\n{inspect.getdoc(value) or '<no docstring>'}")

    def start_clock(self) -> None:
        """Starts the measurement of `%%time`; `finish` shows it when the cell ends."""
        self._started = _clock(), _processor()

    @property
    def is_timing(self) -> bool:
        """Whether the end of the cell shows its time."""
        return self._started is not None

    def finish(self) -> None:
        """Ends a cell."""
        if self._started is not None:
            started, self._started = self._started, None
            self.show_time(*started)

    @staticmethod
    def show_time(started: float, processor: float) -> None:
        """Shows the elapsed time."""
        used, passed = _processor() - processor, _clock() - started
        print(f"CPU times: total: {duration(used)}\nWall time: {duration(passed)}")


def duration(seconds: float) -> str:
    """Formats a duration for people."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _shell() -> str:
    from os.path import exists

    return next(path for path in (*_SHELLS, "sh") if exists(path) or path == "sh")


shell = Shell()


def get_ipython() -> Shell | None:
    """Returns the shell for code of the session; None for a library, which then behaves as in plain Python."""
    return shell if failure.is_user_file(sys._getframe(1).f_code.co_filename) else None

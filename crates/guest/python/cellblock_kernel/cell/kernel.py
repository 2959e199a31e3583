"""The kernel: answers the host's messages one by one, and survives the actions of cells."""

from __future__ import annotations

import ast
import atexit
import builtins
import gc
import os
import sys
from importlib import invalidate_caches
from time import perf_counter_ns
from typing import Any

from cellblock_kernel.cell import failure, guard, places, source, spawning, variables
from cellblock_kernel.cell.channel import Channel
from cellblock_kernel.cell.empty_directories import EmptyDirectories
from cellblock_kernel.cell.execution import Runner
from cellblock_kernel.cell.interrupt import Gate
from cellblock_kernel.cell.namespace import Namespace
from cellblock_kernel.cell.open_files import OpenFiles
from cellblock_kernel.cell.script import Script
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.library import findings, missing, prelude, public
from cellblock_kernel.library.broker import Broker
from cellblock_kernel.library.inputs import Inputs
from cellblock_kernel.notebook import display as notebook
from cellblock_kernel.notebook.shell import shell
from cellblock_kernel.outputs import plot, registry
from cellblock_kernel.outputs.display import Display
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.rescue import databases
from cellblock_kernel.rescue.standby import Standby

# Directories in which the host looks for files after a cell.
_COLLECTED = ("/workspace", "/tmp/output")

_exit = os._exit
_run_exit_handlers = atexit._run_exitfuncs
_gettrace, _settrace, _getprofile, _setprofile = sys.gettrace, sys.settrace, sys.getprofile, sys.setprofile
_getrecursionlimit, _setrecursionlimit = sys.getrecursionlimit, sys.setrecursionlimit

Message = dict[str, Any]


class Kernel:
    """Runs cells in one namespace."""

    def __init__(self, channel: Channel, gate: Gate, streams: Streams, standby: Standby) -> None:
        self._gate = gate
        self._streams = streams
        self._channel = channel
        self._standby = standby
        self._limits = Limits()
        self._guard = "off"
        self._broker = Broker(channel)
        self._display = Display(channel, self._broker, streams, self._limits)
        self._runner = Runner()
        standby.loop_descriptors = self._runner.descriptors
        standby.reopen_loop = self._runner.reopen
        standby.is_asked = self._broker.is_asked
        self._namespace = Namespace()
        self._waiting: dict[str, str] = {}
        self._inputs = Inputs()
        self._script = Script()
        self._open_files = OpenFiles()
        self._empty = EmptyDirectories()
        self._name_report: Any = None
        self._namespace.add({"display": self._display, "inputs": self._inputs})
        notebook.use(self._display)
        public.use()
        shell.use(self._runner, self._namespace.base)
        self._builtins = dict(builtins.__dict__)
        self._recursion = _getrecursionlimit()
        self._cells = {
            "execute": self._execute,
            "check": self._check,
            "setup": self._setup,
            "get": self._get,
            "bind": self._bind,
            "variables": self._variables,
            "reset": self._reset,
            "diverge": self._diverge,
        }

    @property
    def broker(self) -> Broker:
        """Sends a cell's request to the host."""
        return self._broker

    def handle(self, message: Message, blobs: list[bytes]) -> None:
        """Answers one message."""
        self._standby.part()
        kind = message["type"]
        if kind == "configure":
            self._configure(message)
            self._standby.changed(kind)
            return
        answer = self._cells.get(kind)
        if answer is None:
            raise ValueError(f"unknown message {kind!r}")
        self._run(message, blobs, answer)
        self._standby.changed(kind, bool(message.get("last")))

    def _configure(self, message: Message) -> None:
        self._limits.update(message.get("limits") or {})
        self._guard = message.get("guard") or self._guard
        if self._guard == "strict":
            from cellblock_kernel.cell.restricted import restricted

            self._namespace.restrict(restricted())
        self._standby.policy = message.get("rescue") or "off"
        for directory in map(places.real, reversed(message.get("sys_path") or [])):
            if directory not in sys.path:
                sys.path.insert(0, directory)
                failure.layers.append(directory)
                invalidate_caches()
        preludes = message.get("prelude") or []
        self._namespace.add(prelude.names(preludes))
        # Imported only here, because other sessions do not need them.
        if "derivation" in preludes:
            from cellblock_kernel.library.derivation import emission

            emission.use(self._display, self._is_mine, self._limits)
        self._waiting = prelude.waiting(preludes)
        for kind, converter in (message.get("outputs") or {}).items():
            registry.use_of_image(kind, converter)
        if "notebook" in preludes:
            from cellblock_kernel.outputs import printing

            self._namespace.add({"print": printing.typed(self._display, self._streams)})
        if message.get("connectors"):
            from cellblock_kernel.library import connectors

            self._namespace.add(connectors.names(message["connectors"]))

    def _run(self, message: Message, blobs: list[bytes], answer: Any) -> None:
        """Handles a message and sends its `done`, whatever happens meanwhile."""
        done: Message = {"type": "done", "cell": message["cell"], "outcome": "completed"}
        self._display.begin(message["cell"])
        self._gate.begin()
        self._gate.install()
        error: BaseException | None = None
        started = perf_counter_ns()
        try:
            with self._gate:
                self._gate.heed()
                answer(message, blobs, done)
        except BaseException as raised:
            error = raised
        done["duration_us"] = (perf_counter_ns() - started) // 1000
        if not self._is_mine():
            self._finish_child(error)
        self._repair()
        if error is not None:
            self._report(error, message, done)
        if self._name_report is not None:
            # After the repair: a cell may have replaced what the report needs.
            done["names"] = self._name_report.end(self._namespace.base)
            self._name_report = None
        if all(map(self._empty.is_empty, _COLLECTED)):
            done["no_files"] = True
        found = findings.take()
        if found:
            done["findings"] = found
        self._broker.settle()
        self._gate.end()
        self._display.end(done)

    def _repair(self) -> None:
        """Undoes a cell's possible changes to the interpreter."""
        if _gettrace() is not None:
            _settrace(None)
        if _getprofile() is not None:
            _setprofile(None)
        # First, because the kernel's own code needs them. Additions of a cell stay.
        builtins.__dict__.update(self._builtins)
        if _getrecursionlimit() < self._recursion:
            _setrecursionlimit(self._recursion)
        self._namespace.leave()
        self._streams.repair()
        self._gate.install()

    def _report(self, error: BaseException, message: Message, done: Message) -> None:
        """Reports how a cell failed, in its `done` and as its last output."""
        described: failure.Failure
        try:
            with self._gate:
                self._gate.heed()
                described = failure.describe(error, message.get("name"), self._limits.text_chars)
        except BaseException as broken:
            kind = failure.type_name(type(error))
            described = failure.Failure(kind, f"<not shown: {failure.type_name(type(broken))}>", f"{kind}\n")
        if isinstance(error, SystemExit):
            code = _exit_code(error)
            if code == 0:
                return
            described.exit_code = code
            text = error.code if isinstance(error.code, str) else None
            described.message = f"the cell called sys.exit({error.code!r})" if text else f"the cell called sys.exit({code})"
        done["outcome"] = "raised"
        if self._gate.interrupted and failure.type_name(type(error)) in ("KeyboardInterrupt", "CancelledError"):
            done["outcome"] = "interrupted"
            described.message = described.message or "the cell was interrupted"
        elif isinstance(error, guard.Rejection):
            done["outcome"] = "rejected"
            done["rejections"] = error.found
        done["error"] = described.error()
        if message["type"] in ("execute", "check") and done["outcome"] != "rejected":
            self._display.fail(Output(described.output()))

    def _finish_child(self, error: BaseException | None) -> None:
        """Ends a child process that a cell forked and that ran to the end of the cell, as the end of a script would."""
        code = 0
        if isinstance(error, SystemExit):
            code = _exit_code(error)
        elif error is not None:
            code = 1
            try:
                self._streams.err.write(failure.describe(error, None, self._limits.text_chars).traceback)
            except BaseException:
                pass
        self._streams.flush()
        _exit(code)

    def _execute(self, message: Message, blobs: list[bytes], done: Message) -> None:
        if message.get("language"):
            self._execute_other(message)
            return
        code, line = message["code"], message.get("line") or 1
        name = message.get("name") or "<cell>"
        expression = message.get("mode") == "eval"
        source.remember(name, code, line)
        if expression:
            program, tree = source.compile_expression(code, name, line)
        else:
            tree = source.parse(code, name, line)
        guard.check(tree, self._guard, line)
        self._load(tree, code)
        if not expression:
            program = source.compile_cell(tree, code, name, line, message.get("echo", True))
        plot.hook(self._display, self._is_mine)
        store = message.get("store", True)
        names = self._namespace.enter(store)
        if message.get("report_names"):
            from cellblock_kernel.cell.lineage import NameReport

            self._name_report = NameReport(names, tree, (program.body, program.last), store)
        self._script.begin(name, message.get("argv"), names)
        spawning.prepare(code)
        self._inputs.refer(message.get("references") or [], code, names)
        databases.resume()
        try:
            value = self._runner.run(program, names)
            if program.last is not None:
                if expression:
                    self._display.show(value, program.last_name)
                elif value is not None:
                    names["_"] = value
                    # What follows writes nothing, except exit handlers, which may also never return, and `%time`.
                    self._display.echo(value, program.last_name, not message.get("last") and not shell.is_timing)
        except BaseException:
            self._end_code(message, True)
            raise
        self._end_code(message, False)

    def _end_code(self, message: Message, failing: bool) -> None:
        """Shows the figures and writes the files that code left open; after the last cell, also those of its exit handlers."""
        shell.finish()
        if not self._is_mine():
            return
        try:
            self._show_figures(failing)
        finally:
            self._open_files.flush(self._channel.release_held)
            if message.get("last"):
                # Like the end of a script. Errors of a handler go to stderr. A handler may also
                # write, and may never return.
                plot.outlive_exit()
                _run_exit_handlers()
                self._open_files.flush(self._channel.release_held)
        if message.get("last") and self._is_mine():
            self._show_figures(failing)

    def _show_figures(self, failing: bool) -> None:
        if plot.has_figures():
            self._channel.release_held()
            plot.capture(self._display, failing)

    def _execute_other(self, message: Message) -> None:
        """Runs code of another language, which no guard can check."""
        guard.only_python(message["language"], self._guard, message.get("line") or 1)
        # Only here, because few sessions need it.
        from cellblock_kernel import languages

        self._streams.flush()
        languages.run(lambda value: self._display.show(value, None), message)

    def _check(self, message: Message, blobs: list[bytes], done: Message) -> None:
        """Checks code as for `execute`, without running it or keeping anything of it."""
        code, name, line = message["code"], message.get("name") or "<cell>", message.get("line") or 1
        if message.get("mode") == "eval":
            _, tree = source.compile_expression(code, name, line)
        else:
            tree = source.parse(code, name, line)
        guard.check(tree, self._guard, line)
        found: list[Message] = []
        if "cellblock_kernel.library.connectors" in sys.modules:
            from cellblock_kernel.library import connectors

            found = connectors.unknown(tree, self._namespace.names, line)
        if message.get("mode") != "eval":
            source.compile_cell(tree, code, name, line, True)
        if found:
            raise guard.Rejection(found)

    def _setup(self, message: Message, blobs: list[bytes], done: Message) -> None:
        """Runs code that prepares a session. What it binds is not a user's variable."""
        code, name = message["code"], message["name"]
        source.remember(name, code, 1)
        tree = source.parse(code, name, 1)
        guarded = message.get("guarded", True)
        if guarded:
            guard.check(tree, self._guard, 1)
        self._load(tree, code)
        program = source.compile_cell(tree, code, name, 1, False)
        names = self._namespace.enter(True)
        if not guarded:
            # Its functions keep them.
            names["__builtins__"] = builtins
        before = dict(names)
        try:
            self._runner.run(program, names)
        finally:
            if self._is_mine():
                self._namespace.keep(before)
                shell.finish()
                plot.close()

    def _load(self, tree: ast.AST, code: str) -> None:
        if self._waiting and prelude.may_use(code, self._waiting):
            self._namespace.add(prelude.load(tree, self._waiting, self._namespace.names))

    def _is_mine(self) -> bool:
        return self._channel.mine

    def _get(self, message: Message, blobs: list[bytes], done: Message) -> None:
        name = message["name"]
        if name not in self._namespace.names:
            raise missing.variable(f"name {name!r} is not defined in this session", name)
        self._display.show(self._namespace.names[name], name)

    def _bind(self, message: Message, blobs: list[bytes], done: Message) -> None:
        name = message["name"]
        path = message.get("path")
        value = self._inputs.bind(name, message["format"], path and places.real(path), blobs[0] if blobs else None)
        self._namespace.names[name] = value

    def _variables(self, message: Message, blobs: list[bytes], done: Message) -> None:
        done["variables"] = variables.summaries(self._namespace.names, self._namespace.base)

    def _reset(self, message: Message, blobs: list[bytes], done: Message) -> None:
        self._namespace.reset()
        if "cellblock_kernel.languages" in sys.modules:
            from cellblock_kernel import languages

            languages.close()
        registry.forget()
        plot.close()
        gc.collect()
        self._namespace.names.update(self._inputs.reload())

    def _diverge(self, message: Message, blobs: list[bytes], done: Message) -> None:
        # Only here, because few sessions are forked.
        from cellblock_kernel.rescue.arrival import seed

        seed(message["reseed"])


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1

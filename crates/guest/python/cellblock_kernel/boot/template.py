"""The template: one process per image that has imported the image's libraries, and forks kernels.

It never runs user code. It reads packets from the launcher, each a JSON document with descriptors, and answers with packets:

- ``{"spawn": {token, user, own_id, limits, network, rules}}``, with the descriptors of the room's pid namespace, its six other
  namespaces, the channel, stdout, stderr, the spare channel, the rules if there are any, and the cgroup doors, is answered with
  ``{"spawned": {token, pid}}`` or ``{"failed": {token, error}}``;
- ``{"adopt": {pid}}`` turns a process of a room, whose parent is the template, into a kernel;
- ``{"ready": {failed, import_ms}}`` is sent once, ``{"ended": {pid, status}}`` whenever a kernel ends.

A template that is made to be frozen forks once, and the child sends ``{"still": {pid}}`` instead. It is written to a file while
it waits. Each process that is made from that file continues with ``{"thaw": {filtered, installs, snapshot, loader}}`` and sends
``ready``.
"""

from __future__ import annotations

import _socket
import fcntl
import gc
import json
import os
import select
import signal
import sys
import time
import warnings
from typing import Any

from cellblock_kernel.boot import after_fork, lockdown, main, warm

_MAX_PACKET = 128 * 1024
_MAX_DESCRIPTORS = 24
_CHANNEL, _SPARE = 3, 4
# User code can create children of the template (`clone` with `CLONE_PARENT`), and nothing limits
# the template's own CPU time. So it reaps this many at once and then pauses; the others count
# against the processes of their sandbox.
_COLLECTED = 64
_REST_SECONDS = 0.05
# Enough for the interpreter to specialize the code that every cell uses.
_REHEARSALS = 8
_NAMESPACES = 7
# Kernels inherit these from the template, and add the one of their network policy.
_INHERITED = ("/opt/cellblock/filter-0.bpf", "/opt/cellblock/filter-1.bpf")
_LAST = {
    "none": "/opt/cellblock/filter-2.bpf",
    "loopback": "/opt/cellblock/filter-3.bpf",
    "egress": "/opt/cellblock/filter-3.bpf",
}


class Template:
    """Forks kernels on request."""

    def __init__(self, control: int, filtered: bool, installs: bool, snapshot: bool) -> None:
        """Takes the launcher's packet socket; `filtered` says whether system calls of kernels are filtered, `installs` whether
        the template itself installs the filters that they inherit, because it does not have them yet, and `snapshot` whether a
        snapshot of the machine may be taken before a kernel's first message.
        """
        self._filtered, self._installs, self._snapshot = filtered, installs, snapshot
        self._control = _socket.socket(fileno=control)
        # In the order of their starts, in which the ends of several are reported, too.
        self._kernels: dict[int, None] = {}
        self._rests_until: float | None = None

    def prepare(self, modules: list[str], frozen: bool = False) -> None:
        """Imports the image's libraries and reports it; with `frozen`, only once the process was written to a file and made
        again from that.
        """
        started = time.monotonic()
        failed = warm.warm(modules)
        if modules:
            from cellblock_kernel.boot import heap, layout, rehearsal

            libraries = rehearsal.LIBRARY_CELLS if {"pandas", "matplotlib.pyplot"} <= sys.modules.keys() else ()
            rehearsal.rehearse(main.answer, (*rehearsal.CELLS * _REHEARSALS, *libraries * 2))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
        gc.collect()
        if modules:
            from cellblock_kernel.boot import immortal

            gc.unfreeze()
            immortal.immortalize()
        gc.freeze()
        if modules:
            layout.join_mappings()
            heap.settle()
        if frozen:
            self._thaw()
            started = time.monotonic()
        self._open()
        self._send({"ready": {"failed": failed, "import_ms": round((time.monotonic() - started) * 1000)}})

    def _thaw(self) -> None:
        """Waits to be written to a file, and in each process that is made from that, for its first message."""
        # Libraries have threads and open files here, as in every template, but not in its children. What works in
        # a kernel works in a child of the child.
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            os._exit(0)
        os.closerange(self._control.fileno() + 1, 1 << 16)
        self._send({"still": {"pid": os.getpid()}})
        # The launcher recognizes this call, which it repeats in the other process.
        ready = select.poll()
        ready.register(self._control, select.POLLIN)
        ready.poll()
        body = self._control.recv(_MAX_PACKET)
        if not body:
            sys.exit(0)
        thaw = json.loads(body)["thaw"]
        self._filtered, self._installs, self._snapshot = thaw["filtered"], thaw["installs"], thaw["snapshot"]
        lockdown.unmap(*thaw["loader"])

    def _open(self) -> None:
        """Opens what a file cannot hold: descriptors, and the filters of this launcher's policy."""
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY)
        # A handler alone could run just before a read blocks, and the child that ended would not be
        # reaped until the next request. The descriptor wakes `poll`.
        self._ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._filters = {network: lockdown.Filters([_read(path)] if self._filtered else []) for network, path in _LAST.items()}
        lockdown.Filters([_read(path) for path in _INHERITED if self._installs]).install()

    def serve(self) -> None:
        """Answers the launcher until it closes the socket."""
        ready = select.poll()
        ready.register(self._control, select.POLLIN)
        ready.register(self._ended, select.POLLIN)
        while True:
            found = {descriptor for descriptor, _ in ready.poll(self._rest())}
            if self._ended in found:
                os.read(self._ended, 4096)
                if self._rests_until is None:
                    self._reap()
            if self._control.fileno() not in found:
                continue
            body, ancillary, _, _ = self._control.recvmsg(
                _MAX_PACKET, _socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4), _socket.MSG_CMSG_CLOEXEC
            )
            if not body:
                return
            descriptors: list[int] = []
            for level, kind, content in ancillary:
                if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                    descriptors += memoryview(content[: len(content) // 4 * 4]).cast("i")
            try:
                request = json.loads(body)
                if "adopt" in request:
                    self._kernels[request["adopt"]["pid"]] = None
                else:
                    self._spawn(request["spawn"], descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def _spawn(self, request: dict[str, Any], descriptors: list[int]) -> None:
        try:
            lockdown.enter_pid_namespace(descriptors[0])
            try:
                pid = os.fork()
                if pid == 0:
                    _become_kernel(request, descriptors, self._filters[request["network"]], self._snapshot)
            finally:
                lockdown.enter_pid_namespace(self._own)
        except OSError as error:
            self._send({"failed": {"token": request["token"], "error": str(error)}})
            return
        self._kernels[pid] = None
        self._send({"spawned": {"token": request["token"], "pid": pid}})

    def _rest(self) -> float | None:
        """Resumes reaping after its pause; returns the maximum number of milliseconds to wait."""
        if self._rests_until is not None and time.monotonic() >= self._rests_until:
            self._rests_until = None
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            # Their ends are reported at once, however many others wait.
            for kernel in list(self._kernels):
                self._collect(kernel)
            self._reap()
        return None if self._rests_until is None else max(0.0, self._rests_until - time.monotonic()) * 1000 + 1

    def _reap(self) -> None:
        for _ in range(_COLLECTED):
            if not self._collect(-1):
                return
        # Blocked, so that children that end meanwhile do not wake it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        self._rests_until = time.monotonic() + _REST_SECONDS

    def _collect(self, which: int) -> bool:
        """Reaps one child that has ended, and reports it if it is a kernel; returns false if there is none."""
        try:
            pid, status = os.waitpid(which, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid in self._kernels:
            del self._kernels[pid]
            self._send({"ended": {"pid": pid, "status": status}})
        return pid != 0

    def _send(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())


def _become_kernel(request: dict[str, Any], descriptors: list[int], filters: lockdown.Filters, snapshot: bool) -> None:
    """Runs in the child, and never returns."""
    status = 71
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        # A signal that arrives before the kernel has its own handler must not print a traceback of this file.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        namespaces = descriptors[1:_NAMESPACES]
        channel, stdout, stderr, spare, *rest = descriptors[_NAMESPACES:]
        os.dup2(stderr, 2)
        os.dup2(stdout, 1)
        # Opened here, not once for all: processes that inherit an open file share its flags and
        # owner.
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)
        rules = rest.pop(0) if request["rules"] else None
        lockdown.lock_down(lockdown.Room(namespaces, request["user"], rules, rest, request["limits"], request["own_id"]), filters)
        _keep_only(channel, spare)
        filters.install()
        after_fork.refresh()
        main.serve(_CHANNEL, _SPARE, after_fork.refresh if snapshot else None)
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:
        os.write(2, f"kernel setup failed: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _keep_only(channel: int, spare: int) -> None:
    """Moves both channels to their fixed numbers and closes everything else."""
    # First move them aside: either may have the other's number.
    channel, spare = fcntl.fcntl(channel, fcntl.F_DUPFD, _SPARE + 1), fcntl.fcntl(spare, fcntl.F_DUPFD, _SPARE + 1)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.dup2(spare, _SPARE, inheritable=False)
    os.closerange(_SPARE + 1, 1 << 16)


def run(control: int, modules: list[str], filtered: bool, installs: bool, snapshot: bool, frozen: bool) -> None:
    """Runs a template until the launcher closes the socket."""
    template = Template(control, filtered, installs, snapshot)
    template.prepare(modules, frozen)
    template.serve()
    sys.exit(0)

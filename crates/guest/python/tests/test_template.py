"""What a template does before, and a kernel after, the fork."""

import importlib
import json
import subprocess
import sys
import unittest

from cellblock_kernel.cell.on_import import on_import
from tests.driver import PACKAGE, needs

FORKS = """
import json, os, random, sys, tempfile
from cellblock_kernel.boot import after_fork, warm
failed = warm.warm(sys.argv[1:])
import multiprocessing
drawn = []
for _ in range(2):
    read, write = os.pipe()
    if not os.fork():
        after_fork.refresh()
        row = [random.random(), next(tempfile._get_candidate_names()), multiprocessing.current_process().authkey.hex()]
        if "numpy" in sys.modules:
            row.append(sys.modules["numpy"].random.rand())
        os.write(write, json.dumps(row).encode())
        os._exit(0)
    drawn.append(json.loads(os.read(read, 4096)))
print(json.dumps([failed, drawn, os.environ["MPLBACKEND"]]))
"""

# No cell of this rehearsal runs, as the reader of its answers cannot be started.
FULL = """
import os, threading
from cellblock_kernel.boot import main, rehearsal
def full(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = full
before = os.listdir("/proc/self/fd")
rehearsal.rehearse(main.answer, rehearsal.CELLS)
print(os.listdir("/proc/self/fd") == before)
"""

# A kernel of a machine: what it does before its first cell, by what its host sends at once when it waits, and what it sends once
# it has rehearsed again.
RESTORED = """
import json, os, socket, sys, threading, time
from cellblock_kernel.boot import main, rehearsal
from cellblock_kernel.cell.channel import frame
did, sent = [], []
arrived = threading.Event()
def rehearsed():
    did.append("rehearse")
    if did.count("rehearse") == 3:
        arrived.wait()
json.rehearsed = rehearsed
rehearsal.CELLS = ("import json; json.rehearsed()",) * 2
ours, theirs = socket.socketpair()
at_once, later = ([frame(message) for message in json.loads(messages)] for messages in sys.argv[1:3])
def host():
    while len(did) < 2:
        time.sleep(0.001)
    ours.sendall(b"".join(at_once))
    while later and did.count("rehearse") < 3:
        time.sleep(0.001)
    ours.sendall(b"".join(later))
    ours.shutdown(socket.SHUT_WR)
    arrived.set()
    while received := ours.recv(1 << 16):
        sent.append(received)
thread = threading.Thread(target=host)
thread.start()
main.serve(theirs.detach(), None, lambda: did.append("refresh"), sys.argv[3] == "again")
ours.shutdown(socket.SHUT_RD)
thread.join()
os.write(2, json.dumps([did, b"".join(sent).decode("latin").count('"completed"')]).encode())
"""

CHILDREN = """
import json, os, signal, socket, sys, time
from cellblock_kernel.boot import template
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
made = template.Template(theirs.detach(), False, False, False)
def child():
    pid = os.fork()
    if not pid:
        os._exit(7)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid
strangers = [child() for _ in range(template._COLLECTED + 5)]
kernel = child()
made._kernels[kernel] = None
made._reap()
def zombies():
    return sum(open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[0] == "Z" for pid in strangers if os.path.exists(f"/proc/{pid}"))
left, blocked = zombies(), signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ())
while made._rests_until is not None:
    time.sleep((made._rest() or 0) / 1000)
ours.setblocking(False)
told = []
try:
    while True:
        told.append(json.loads(ours.recv(4096)))
except BlockingIOError:
    pass
print(json.dumps([left, blocked, zombies(), signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ()), kernel, told]))
"""

# Modules that take long to import, and that the first cell does not need.
SLOW = ("asyncio", "dataclasses", "decimal", "inspect", "pathlib", "pprint", "socket", "subprocess", "uuid")
STARTED = """
import sys
from cellblock_kernel.boot import lone, template
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


# The launcher's side of freezing and thawing, without what is between them.
FROZEN = """
import json, os, signal, socket, sys
from cellblock_kernel.boot import template
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
started = os.fork()
if not started:
    ours.close()
    os.dup2(theirs.fileno(), 3)
    opened = os.open("/dev/null", os.O_RDONLY)
    template.run(3, [], False, False, False, True)
theirs.close()
still = json.loads(ours.recv(1 << 16))["still"]["pid"]
opened = sorted(map(int, os.listdir(f"/proc/{still}/fd")))
threads = len(os.listdir(f"/proc/{still}/task"))
ours.send(json.dumps({"thaw": {"filtered": False, "installs": False, "snapshot": False, "loader": [1 << 36, 4096]}}).encode())
ready = json.loads(ours.recv(1 << 16))["ready"]
ours.close()
print(json.dumps([still != started, opened, threads, ready["failed"], os.waitstatus_to_exitcode(os.waitpid(started, 0)[1])]))
"""


class Template(unittest.TestCase):
    def test_a_template_to_be_frozen_waits_in_a_child_without_threads_and_files(self) -> None:
        done = subprocess.run([sys.executable, "-c", FROZEN], cwd=PACKAGE, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [True, [0, 1, 2, 3], 1, [], 0])

    def fork(self, *modules):
        done = subprocess.run(
            [sys.executable, "-c", FORKS, *modules], cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=120
        )
        return json.loads(done.stdout)

    def test_every_random_state_differs_between_siblings(self):
        failed, (first, second), _ = self.fork("random")
        self.assertEqual(failed, [])
        for one, other in zip(first, second):
            self.assertNotEqual(one, other)

    def test_children_that_are_not_kernels_are_reaped_slowly_and_not_reported(self):
        done = subprocess.run(
            [sys.executable, "-c", CHILDREN], cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=120
        )
        left, blocked, later, still_blocked, kernel, told = json.loads(done.stdout)
        self.assertEqual((left, blocked), (5, True))
        self.assertEqual((later, still_blocked), (0, False))
        self.assertEqual(told, [{"ended": {"pid": kernel, "status": 7 << 8}}])

    def test_a_kernel_at_its_process_limit_starts_without_a_rehearsal(self):
        done = subprocess.run([sys.executable, "-c", FULL], cwd=PACKAGE, capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)

    def test_a_kernel_of_a_restored_machine_rehearses_again_unless_a_cell_waits(self):
        restored, cell = (
            {"type": "restored"},
            {"type": "execute", "cell": 1, "code": "1", "name": "c", "mode": "exec", "echo": True, "store": True},
        )
        for at_once, later, again, did, answered in (
            # Until a cell of the host comes.
            ([restored], [cell], "again", ["refresh", "rehearse"], 1),
            ([restored, cell], [], "again", ["refresh"], 1),
            ([restored, cell], [], "once", ["refresh"], 1),
            ([cell], [], "again", ["refresh"], 1),
            ([], [], "again", ["refresh"], 0),
        ):
            done = subprocess.run(
                [sys.executable, "-c", RESTORED, json.dumps(at_once), json.dumps(later), again],
                cwd=PACKAGE,
                capture_output=True,
                text=True,
                timeout=120,
            )
            self.assertEqual((done.returncode, json.loads(done.stderr)), (0, [["rehearse"] * 2 + did, answered]))

    def test_a_kernel_starts_without_modules_that_take_long_to_import(self):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(PACKAGE)!r})\n{STARTED}", *SLOW],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        self.assertEqual(done.stdout.split(), [])

    def test_a_library_is_changed_once_and_again_when_it_is_loaded_again(self):
        import colorsys

        changed = []
        change = changed.append
        # In a template, and in the kernels that are forked from it.
        on_import("colorsys", change)
        on_import("colorsys", change)
        self.assertEqual(changed, [colorsys])
        importlib.reload(colorsys)
        self.assertEqual(changed, [colorsys] * 2)

    def test_a_missing_module_is_named_with_its_reason(self):
        failed, _, backend = self.fork("no_such_module")
        self.assertEqual(failed, ["no_such_module: ModuleNotFoundError: No module named 'no_such_module'"])
        self.assertEqual(backend, "agg")

    @needs("numpy", "pandas", "matplotlib", "altair")
    def test_libraries_are_warmed_without_starting_threads(self):
        failed, (first, second), _ = self.fork("numpy", "pandas", "matplotlib.pyplot", "altair")
        self.assertEqual(failed, [])
        self.assertNotEqual(first[3], second[3])

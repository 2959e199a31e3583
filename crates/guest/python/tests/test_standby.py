"""A standby holds the state from before a cell, and goes on when the cell ends the kernel."""

import json
import os
import signal
import time
import unittest
from typing import get_args

from cellblock_kernel.rescue.obstacle import Kind
from tests.driver import PACKAGE, KernelTest
from tests.needs import needs

CRASHES = (
    "import os; os._exit(3)",
    "import os; os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
)
_LIMIT = 60


class ObstacleKinds(unittest.TestCase):
    def test_the_host_knows_every_kind_of_obstacle(self):
        schema = json.loads((PACKAGE.parent.parent / "protocol/schema/gen-6.json").read_text())
        known = schema["from_kernel"]["$defs"]["Obstacle"]["oneOf"]
        self.assertLessEqual(set(get_args(Kind)), {it["properties"]["kind"]["const"] for it in known})


class Rescue(KernelTest):
    configuration = {"rescue": "on"}

    def made(self):
        """The standby after the cell before, which must have been made."""
        standby = self.kernel.hear_of_standby()
        self.assertIsNone(standby["refused"])
        return standby

    def refused(self, code):
        """Runs a cell after which no standby can be made, and returns why."""
        self.completes(code)
        standby = self.kernel.hear_of_standby()
        self.assertIsNone(standby["pid"])
        return standby["refused"]

    def value(self, code):
        [value] = self.completes(code).values
        return value

    def test_after_a_crash_the_state_is_that_from_before_the_cell(self):
        self.completes("x = [1, 2]\ndef f(y):\n    return y + len(x)\nclass C:\n    value = 3\nc = C()")
        for number, crash in enumerate(CRASHES):
            self.made()
            self.kernel.crash(f"x.append(9); del f; C.value = 4; half = {number}\n{crash}")
            self.kernel.rescue()
            self.assertEqual(self.value("(x, f(1), c.value, 'half' in globals()) == ([1, 2], 3, 3, False)"), True)

    def test_an_unknown_machine_reports_why_it_has_no_standby(self):
        unknown = "from cellblock_kernel.rescue import clone\nclone._machine, clone._name = None, 'riscv64'"
        reason = "not supported on riscv64, only on x86_64 and aarch64"
        self.assertEqual(self.refused(unknown), {"kind": "no_copy", "reason": reason})

    def test_the_standby_is_reported_with_the_number_of_changes(self):
        self.completes("1")
        self.assertEqual(self.made()["changes"], 2)
        self.completes("1")
        self.assertEqual(self.made()["changes"], 3)
        self.kernel.ask("variables")
        self.completes("1")
        self.assertEqual(self.made()["changes"], 4)

    def test_a_standby_is_one_process_at_a_time_and_no_child_of_the_kernel(self):
        self.completes("import os")
        first = self.made()["pid"]
        self.assertEqual(self.value("open(f'/proc/self/task/{os.getpid()}/children').read()"), "")
        second = self.made()["pid"]
        self.assertNotEqual(first, second)
        self.ends(first)
        waits = "try:\n    os.wait()\nexcept ChildProcessError:\n    answer = 'none'\nanswer"
        self.assertEqual(self.value(waits), "none")

    def ends(self, pid):
        """Waits until a process is gone or a zombie."""
        deadline = time.monotonic() + _LIMIT
        while time.monotonic() < deadline:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except FileNotFoundError:
                return
            time.sleep(0.01)
        self.fail(f"process {pid} lives")

    def test_a_child_signal_handler_of_a_cell_never_runs(self):
        self.completes("import signal; seen = []; signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))")
        for _ in range(3):
            self.made()
            self.completes("1")
        self.made()
        self.assertEqual(self.value("len(seen)"), 0)

    def test_a_fork_hook_of_a_cell_never_runs(self):
        hook = "lambda: seen.append(1)"
        self.completes(f"import os; seen = []; os.register_at_fork(before={hook}, after_in_parent={hook}, after_in_child={hook})")
        self.made()
        self.kernel.crash("os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.value("len(seen)"), 0)

    def test_random_numbers_continue_from_before_the_cell(self):
        self.completes("import random, os; random.seed(7); random.random()")
        self.made()
        self.kernel.crash("random.random(); os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.value("random.random()"), self.value("random.seed(7); random.random(); random.random()"))

    def test_an_open_file_keeps_its_position(self):
        (self.directory / "lines").write_text("a\nb\nc\n" + "x" * 100_000)
        self.completes("import os\nf = open('lines', 'rb', buffering=0); first = f.read(2)")
        self.made()
        self.kernel.crash("f.read(500); os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.value("(first + f.read(2)).decode()"), "a\nb\n")

    def test_the_working_directory_and_top_level_await_survive(self):
        self.completes("import os, asyncio\nos.mkdir('sub'); os.chdir('sub')\nawait asyncio.sleep(0)")
        self.made()
        self.kernel.crash("os.chdir('/'); os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.value("await asyncio.sleep(0, os.path.basename(os.getcwd()))"), "sub")

    def test_obstacles_of_a_copy_are_named(self):
        for code, expected, undo in (
            ("import threading; e = threading.Event(); t = threading.Thread(target=e.wait); t.start()",
             "python_threads", "e.set(); t.join()"),
            ("import os; r, w = os.pipe()", "open_pipe", "os.close(r); os.close(w)"),
            ("import socket; a, b = socket.socketpair()", "open_socket", "a.close(); b.close()"),
            ("import fcntl; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)", "locked_file", "f.close()"),
            ("import subprocess; p = subprocess.Popen(['sleep', '60'])", "child_processes", "p.kill(); p.wait()"),
        ):  # fmt: skip
            with self.subTest(expected):
                self.assertEqual(self.refused(code), {"kind": expected})
                self.completes(undo)
                self.made()

    @needs("duckdb")
    def test_databases_of_duckdb_are_rescued_with_their_threads(self):
        total = "select sum(i)::bigint from range(3000000) t(i)"
        self.completes(
            f"import duckdb, os\nn = duckdb.sql('{total}').fetchall()\ncon = duckdb.connect()\ncon.execute('set threads=3')"
        )
        self.completes(
            "con.sql('create table t as from range(9)')\nreading = con.cursor()\nreading.execute('from range(5000) t(i)').fetchone()"
        )
        self.made()
        self.kernel.crash("con.sql('drop table t'); os._exit(1)")
        self.kernel.rescue()
        look = "sorted(con.sql(\"select name, value from duckdb_settings() where name = 'threads'\").fetchall())"
        self.assertEqual(self.value(f"str({look})"), "[('threads', '3')]")
        self.assertEqual(
            self.value(f"str((con.sql('from t').fetchall()[-1], con.sql('{total}').fetchall(), reading.fetchone()))"),
            "((8,), [(4499998500000,)], (1,))",
        )
        self.assertEqual(self.value(f"reading.close(); con.close(); str(duckdb.sql('{total}').fetchall() == n)"), "True")

    @needs("duckdb", "pyarrow")
    def test_threads_are_named_after_their_library(self):
        self.assertEqual(
            self.refused("import duckdb\nkept = [duckdb.connect()]\n_ = kept[0].sql('select 1').fetchall()"),
            {"kind": "threads", "owners": "duckdb"},
        )
        # A new thread may get the stack of one that has ended, on which addresses of its library are left.
        self.start_kernel()
        code = "import io, pyarrow, pyarrow.parquet as pq\nb = io.BytesIO(); pq.write_table(pyarrow.table({'a': [1], 'b': [2]}), b); _ = pq.read_table(b)"
        self.assertEqual(self.refused(code), {"kind": "threads", "owners": "pyarrow"})

    def test_a_standby_that_was_killed_does_not_disturb_the_kernel(self):
        self.completes("x = 1")
        os.kill(self.made()["pid"], signal.SIGKILL)
        self.assertEqual(self.value("x"), 1)
        self.made()
        self.kernel.crash("import os; os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.value("x"), 1)

    def test_a_standby_ends_with_the_host(self):
        self.completes("x = 1")
        pid = self.made()["pid"]
        self.kernel.close()
        self.ends(pid)


class Idle(KernelTest):
    configuration = {"rescue": "idle"}

    def test_a_standby_is_made_when_no_message_comes(self):
        self.completes("x = 1")
        self.assertIsNone(self.kernel.hear_of_standby()["refused"])
        self.kernel.crash("import os; os._exit(1)")
        self.kernel.rescue()
        self.assertEqual(self.completes("x").values, [1])

    def test_a_standby_ends_when_nothing_is_asked_for_long_and_the_next_message_waits_for_another(self):
        self.completes("x = 1\nfrom cellblock_kernel.rescue import standby\nstandby._REST_MS = 50")
        first = self.kernel.hear_of_standby()
        self.assertIsNotNone(first["pid"])
        self.assertEqual(self.kernel.hear_of_standby(), {**first, "pid": None})
        self.kernel.crash("x = 2; import os; os._exit(1)")
        self.assertEqual(self.kernel.standby["changes"], first["changes"])
        self.assertNotIn(self.kernel.standby["pid"], (None, first["pid"]))
        self.kernel.rescue()
        self.assertEqual(self.completes("x").values, [1])

    def test_immediate_cells_do_not_wait_for_a_standby(self):
        for _ in range(3):
            self.kernel.start("execute", code="1", name="cell.py", mode="exec", echo=True, store=True)
        for cell in range(1, 4):
            self.kernel._cell = cell
            self.assertEqual(self.kernel.finish().values, [1])
            self.assertIsNone(self.kernel.standby)
        self.assertEqual(self.kernel.hear_of_standby()["changes"], 4)

    def test_the_first_cell_after_a_rescue_does_not_wait_for_a_standby(self):
        patient = """
import os
from cellblock_kernel.cell import channel
first, ready = os.getpid(), channel.Channel.ready
channel.Channel.ready = lambda self, limit: ready(self, limit if os.getpid() == first else 60_000)
"""
        self.completes(patient + "x = 1")
        self.assertIsNone(self.kernel.hear_of_standby()["refused"])
        self.kernel.standby = None
        self.kernel.crash("os._exit(1)")
        self.kernel.take_over()
        self.assertEqual(self.completes("x").values, [1])
        self.assertIsNone(self.kernel.standby)


class Off(KernelTest):
    configuration = {"rescue": "off"}

    def test_no_standby_is_made(self):
        self.completes("1")
        self.completes("2")
        self.assertIsNone(self.kernel.standby)

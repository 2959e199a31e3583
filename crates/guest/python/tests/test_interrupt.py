"""SIGINT: it stops a cell, and never the kernel."""

import os
import signal
import time

from tests.driver import Kernel, KernelTest

ROUNDS = 200


def spin(count):
    """Passes some time that depends on nothing but the machine: about 10 µs for each count."""
    for _ in range(count * 100):
        pass


class Interrupts(KernelTest):
    def interrupted(self, code):
        """Interrupts a cell once it has printed `go`."""
        self.completes("import asyncio, subprocess, threading, time")
        self.kernel.begin("print('go')\n" + code)
        self.kernel.wait_for("go")
        time.sleep(0.02)
        self.kernel.interrupt()
        return self.kernel.finish()

    def test_a_busy_loop_is_interrupted_and_names_survive(self):
        self.completes("x = 1")
        ran = self.interrupted("y = 2\nwhile True: pass")
        self.assertEqual(ran.done["outcome"], "interrupted")
        self.assertEqual((ran.exception["exception"], ran.exception["line"]), ("KeyboardInterrupt", 3))
        self.assertEqual(self.completes("x + y").values, [3])

    def test_sleeping_locking_and_subprocesses_are_interrupted(self):
        for code in (
            "import time; time.sleep(60)",
            "import threading; l = threading.Lock(); l.acquire(); l.acquire()",
            "import subprocess; subprocess.run(['sleep', '60'])",
        ):
            with self.subTest(code):
                self.assertEqual(self.interrupted(code).done["outcome"], "interrupted")

    def test_an_awaiting_cell_is_interrupted_and_cleans_up(self):
        code = "import asyncio\ntry:\n  await asyncio.sleep(60)\nfinally:\n  cleaned = True"
        self.assertEqual(self.interrupted(code).done["outcome"], "interrupted")
        self.assertEqual(self.completes("cleaned, await asyncio.sleep(0, 1)").values, ["(True, 1)"])

    def test_asyncio_run_is_interrupted(self):
        ran = self.interrupted("import asyncio\nasyncio.run(asyncio.sleep(60))")
        self.assertEqual(ran.done["outcome"], "interrupted")
        self.assertEqual(self.completes("asyncio.run(asyncio.sleep(0, 2))").values, [2])

    def test_a_hanging_repr_is_interrupted(self):
        ran = self.interrupted("class R:\n  def __repr__(self):\n    while True: pass\nR()")
        self.assertEqual(ran.done["outcome"], "interrupted")

    def test_a_hanging_exception_text_is_interrupted(self):
        self.kernel.begin("class E(Exception):\n  def __str__(self):\n    print('go')\n    while True: pass\nraise E")
        self.kernel.wait_for("go")
        self.kernel.interrupt()
        self.assertEqual(self.kernel.finish().done["outcome"], "raised")
        self.assertEqual(self.completes("1").values, [1])

    def test_a_signal_between_cells_is_ignored(self):
        for _ in range(20):
            self.kernel.interrupt()
        self.let_late_ones_pass()
        self.assertEqual(self.completes("1").values, [1])

    def let_late_ones_pass(self):
        """What the host does after it has told a cell to stop: a signal that the cell did not see hits nothing else."""
        self.assertIn(self.kernel.ask("variables").done["outcome"], ("completed", "interrupted"))

    def test_a_signal_sent_after_a_cell_stops_it_in_every_state_of_the_kernel(self):
        self.completes("kept = 1")
        for number in range(ROUNDS):
            with self.subTest(number):
                self.kernel.begin("while True: pass")
                spin(number)
                self.kernel.interrupt()
                self.assertEqual(self.kernel.finish().done["outcome"], "interrupted")
        self.assertEqual(self.completes("kept").values, [1])

    def test_a_signal_that_comes_before_a_large_cell_was_read_stops_it(self):
        self.completes("kept = 1")
        for number in range(20):
            with self.subTest(number):
                self.kernel.begin("while True: pass\n#" + "-" * 10_000 * number)
                self.kernel.interrupt()
                self.assertEqual(self.kernel.finish().done["outcome"], "interrupted")
        self.assertEqual(self.completes("kept").values, [1])

    def test_a_signal_in_the_first_moments_of_a_kernel_stops_its_first_cell(self):
        for number in range(12):
            with self.subTest(number):
                kernel = Kernel(str(self.directory))
                try:
                    # A new kernel tries itself out where nothing comes within its first milliseconds.
                    time.sleep(0.0045 + number * 0.0005)
                    kernel.begin("while True: pass")
                    spin(number)
                    kernel.interrupt()
                    self.assertEqual(kernel.finish().done["outcome"], "interrupted")
                finally:
                    kernel.close()

    def test_a_signal_at_the_end_of_a_cell_stops_no_other(self):
        for number in range(ROUNDS):
            with self.subTest(number):
                self.kernel.begin(f"display({number})\nkept = {number}")
                spin(number * 4)
                self.kernel.interrupt()
                ran = self.kernel.finish()
                self.assertIn(ran.done["outcome"], ("completed", "interrupted"))
                self.let_late_ones_pass()
                self.assertEqual(self.completes("'on'").values, ["on"])

    def test_a_signal_before_the_code_is_reported_without_a_line(self):
        self.kernel.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.kernel.process.pid, os.WSTOPPED)
        self.kernel.begin("never = 1")
        self.kernel.interrupt()
        self.kernel.process.send_signal(signal.SIGCONT)
        ran = self.kernel.finish()
        self.assertEqual(ran.done["outcome"], "interrupted")
        self.assertEqual(
            (ran.exception["exception"], ran.exception["message"], ran.exception["frames"]),
            ("KeyboardInterrupt", "the cell was interrupted", []),
        )
        self.assertNotIn("line", ran.exception)
        self.assertEqual(self.raises("never")["exception"], "NameError")

    def test_signals_at_any_moment_lose_no_answer(self):
        for number in range(300):
            self.kernel.begin(f"display({number}); {number}")
            if number % 3:
                time.sleep(number % 7 * 1e-5)
            self.kernel.interrupt()
            ran = self.kernel.finish()
            self.assertIn(ran.done["outcome"], ("completed", "interrupted"))
        self.let_late_ones_pass()
        self.assertEqual(self.completes("'alive'").values, ["alive"])

    def test_a_keyboard_interrupt_of_the_code_itself_is_raised(self):
        self.assertEqual(self.raises("raise KeyboardInterrupt('mine')")["exception"], "KeyboardInterrupt")

    def test_code_that_swallows_the_interrupt_keeps_running(self):
        ran = self.interrupted("import time\ntry:\n  time.sleep(60)\nexcept KeyboardInterrupt:\n  pass\n'on'")
        self.assertEqual((ran.done["outcome"], ran.values), ("completed", ["on"]))

    def test_a_handler_of_the_code_is_gone_in_the_next_cell(self):
        self.completes("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);")
        self.assertEqual(self.interrupted("while True: pass").done["outcome"], "interrupted")

    def test_a_forked_child_gets_the_default_behavior(self):
        code = (
            "import os, signal, time\npid = os.fork()\nif not pid:\n  try:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"
            "  except KeyboardInterrupt:\n    os._exit(9)\n  os._exit(1)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        self.assertEqual(self.completes(code).values, [9])

    def test_an_interrupted_call_to_the_host_leaves_the_channel_whole(self):
        self.kernel.begin("from cellblock_kernel.library import broker\nprint('go')\nbroker.call('slow', {})")
        self.kernel.wait_for("go")
        header, _ = self.kernel._frame()
        self.assertEqual((header["type"], header["method"]), ("call", "slow"))
        os.kill(self.kernel.hello["pid"], signal.SIGINT)
        self.assertEqual(self.kernel.finish().done["outcome"], "interrupted")
        self.kernel.send({"type": "answer", "call": header["call"], "value": 1})
        self.assertEqual(self.completes("5").values, [5])

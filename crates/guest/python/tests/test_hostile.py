"""Code that breaks what the kernel stands on, by accident or not: the next cell works."""

from tests.driver import KernelTest


class Damage(KernelTest):
    def survives(self, code):
        self.kernel.run(code)
        ran = self.completes("print('out'); 6 * 7")
        self.assertEqual((ran.values, ran.stdout), ([42], "out\n"), code)

    def test_the_standard_streams_may_be_replaced_closed_or_removed(self):
        for code in (
            "import sys; sys.stdout.close()",
            "import sys; sys.stdout = None; sys.stderr = None",
            "import sys; del sys.stdout",
            "import os; os.close(1); os.close(2)",
            "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        ):
            with self.subTest(code):
                self.survives(code)

    def test_a_replaced_stream_that_works_is_kept(self):
        self.completes("import io, sys; saved, sys.stdout = sys.stdout, io.StringIO(); print('kept')")
        self.assertEqual(self.completes("text = sys.stdout.getvalue(); sys.stdout = saved; text").values, ["kept\n"])

    def test_builtins_may_be_deleted_or_replaced(self):
        for code in (
            "import builtins\nfor n in list(vars(builtins)): delattr(builtins, n)",
            "import builtins\nbuiltins.len = builtins.isinstance = builtins.print = None",
            "del __builtins__",
            "globals().clear()",
        ):
            with self.subTest(code):
                self.survives(code)

    def test_modules_may_be_patched(self):
        for code in (
            "import json, json.encoder; json.dumps = json.loads = json.encoder.JSONEncoder.encode = None",
            "import ast, os, time, socket, sys, linecache, traceback, types\n"
            "for m in (ast, time, socket, linecache, traceback, types):\n"
            "  for n in list(vars(m)):\n    if not n.startswith('__'): setattr(m, n, None)",
            "import os; os.getpid = os.write = os.fstat = os.dup2 = None",
            "import sys; sys.modules.clear()",
            "import sys; sys.displayhook = sys.excepthook = None",
        ):
            with self.subTest(code):
                self.kernel.run(code)
                self.assertEqual(self.completes("6 * 7").values, [42])
                self.assertEqual(self.run_cell("1 / 0").exception["message"], "division by zero")
            self.setUp()

    def test_tracing_profiling_and_a_low_recursion_limit_end_with_the_cell(self):
        for code in (
            "import sys\ndef t(*a): raise RuntimeError\nsys.settrace(t)",
            "import sys\ndef t(*a): raise RuntimeError\nsys.setprofile(t)",
            "import sys; sys.setrecursionlimit(20)",
        ):
            with self.subTest(code):
                self.survives(code)

    def test_a_removed_directory_is_harmless(self):
        self.survives("import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')")
        self.assertEqual(self.raises("1 / 0")["exception"], "ZeroDivisionError")

    def test_broken_values_are_named(self):
        ran = self.completes("class R:\n  def __repr__(self): raise ValueError\nR()")
        self.assertEqual(ran.values, ["<R object whose __repr__ raised ValueError>"])
        ran = self.completes("class N:\n  def __repr__(self): return 3\nN()")
        self.assertEqual(ran.values, ["<N object whose __repr__ raised TypeError>"])
        ran = self.completes("class G:\n  def __getattr__(self, n): return lambda *a, **k: 1 / 0\nG()")
        self.assertEqual(ran.values[0], "<__main__.G object>")

    def test_running_out_of_memory_and_stack_is_survived(self):
        self.assertEqual(self.raises("x = 'a' * (1 << 62)")["message"][:13], "out of memory")
        self.survives("def f(): f()\nf()")

    def test_the_kernel_ends_cleanly_when_code_closes_the_channel(self):
        self.kernel.begin("import os; os.closerange(3, 256)")
        with self.assertRaises((EOFError, OSError)):
            self.kernel.finish()
        self.assertEqual(self.kernel.process.wait(60), 0)


class Children(KernelTest):
    def test_a_forked_child_ends_with_the_cell(self):
        ran = self.completes(
            "import os\npid = os.fork()\nif pid: status = os.waitpid(pid, 0)[1]\nprint('child' if not pid else status)"
        )
        self.assertEqual(ran.stdout, "child\n0\n")

    def test_a_forked_child_that_raises_prints_and_exits_one(self):
        code = "import os\nif not (pid := os.fork()): 1 / 0\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        ran = self.completes(code)
        self.assertEqual(ran.values, [1])
        self.assertIn("ZeroDivisionError", ran.stderr)

    def test_display_in_a_child_prints_text(self):
        code = "import os\nif not (pid := os.fork()):\n  display({'a': 1}); os._exit(0)\nos.waitpid(pid, 0);"
        ran = self.completes(code)
        self.assertEqual((ran.stdout, ran.outputs), ("{'a': 1}\n", []))

    def test_the_channel_is_not_inherited_by_commands(self):
        ran = self.completes(
            "import subprocess\nsubprocess.run('ls -l /proc/self/fd', shell=True, close_fds=False, capture_output=True, text=True).stdout"
        )
        self.assertNotIn("socket", ran.values[0])

    def test_output_of_commands_and_of_c_code_is_captured_in_order(self):
        ran = self.completes(
            "import subprocess, ctypes\nprint('one')\nsubprocess.run(['echo', 'two'])\nctypes.CDLL(None).puts(b'three')\ndisplay(0)\nprint('four');"
        )
        self.assertEqual(ran.stdout, "one\ntwo\nthree\nfour\n")

    def test_output_before_a_hard_exit_is_kept(self):
        self.kernel.begin("print('last words')\nimport os; os._exit(7)")
        with self.assertRaises(EOFError):
            self.kernel.finish()
        self.assertEqual(self.kernel.process.wait(60), 7)
        self.assertEqual(b"".join(self.kernel._text.values()), b"last words\n")


class Threads(KernelTest):
    def test_displays_of_threads_do_not_mix(self):
        code = (
            "import threading\ndef f(n):\n  for i in range(50): display('x' * 1000 + str(n))\n"
            "ts = [threading.Thread(target=f, args=(n,)) for n in range(2)]\n[t.start() for t in ts]; [t.join() for t in ts];"
        )
        ran = self.completes(code)
        self.assertEqual(len(ran.outputs), 100)

    def test_a_display_after_the_cell_is_text(self):
        self.completes(
            "import threading\ngo = threading.Event()\nt = threading.Thread(target=lambda: (go.wait(), display('late')))\nt.start()"
        )
        ran = self.completes("go.set(); t.join()")
        self.assertEqual(ran.values, ["late"])


class Oversize(KernelTest):
    def test_outputs_beyond_the_frame_limit_are_cut_or_left_out(self):
        for code in (
            "display(1, name='x' * 10_000_000)",
            "type('T' * 10_000_000, (), {})()",
            "raise type('E' * 10_000_000, (Exception,), {})",
            "e = ValueError(1); [e.add_note('n' * 10_000_000) for _ in range(3)]\nraise e",
            "raise ValueError(1), '" + "s" * 500_000 + "'",
            "class M:\n  def _repr_mimebundle_(self, include=None, exclude=None): return {'m' * 10_000_000: 'x'}\nM()",
        ):
            with self.subTest(code[:30]):
                self.kernel.run(code)
                self.assertEqual(self.completes("1").values, [1])
        self.completes("globals().update({'v' + str(n) * 200: n for n in range(30_000)})")
        self.assertEqual(self.kernel.ask("variables").done["outcome"], "completed")
        self.assertEqual(self.completes("1").values, [1])

    def test_many_rejections_are_cut(self):
        self.kernel.send({"type": "configure", "guard": "standard"})
        ran = self.run_cell("import os\n" + "os.environ\n" * 1000)
        self.assertEqual((ran.done["outcome"], len(ran.done["rejections"])), ("rejected", 50))


class Limits(KernelTest):
    configuration = {"limits": {"outputs": 3, "output_bytes": 1000, "text_chars": 100, "rows_preview": 2}}

    def test_outputs_beyond_the_limit_are_counted(self):
        ran = self.completes("for n in range(10): display(n)")
        self.assertEqual((ran.values, ran.done["outputs_dropped"]), ([0, 1, 2], 7))

    def test_the_exception_is_sent_beyond_the_limit(self):
        ran = self.run_cell("for n in range(10): display(n)\n1 / 0")
        self.assertEqual((len(ran.outputs), ran.exception["exception"]), (4, "ZeroDivisionError"))

    def test_text_is_cut(self):
        output = self.completes("'a' * 500 + 'z' * 500").outputs[0]
        note = "only the beginning and the end are shown: this text has 1000 characters"
        shown = "a" * 26 + "\n… 948 characters left out …\n" + "z" * 26
        self.assertEqual((output["value"], output["truncated"], output["note"]), (shown, True, note))
        output = self.completes("list(range(100))").outputs[0]
        self.assertTrue(output["value"].endswith("98, 99]"))
        output = self.completes("10 ** 500").outputs[0]
        self.assertEqual((output["value"][:3], output["truncated"]), ("100", True))
        self.assertEqual(self.completes("'x' * 100").values, ["x" * 100])

    def test_large_blobs_are_left_out(self):
        output = self.completes("class H:\n  def _repr_html_(self): return 'x' * 2000\nH()").outputs[0]
        self.assertEqual((output["type"], output["mimes"], output["truncated"]), ("rich", [], True))

"""Cells as scripts: arguments, files that stay open, handlers at the end, processes."""

import shutil
import tempfile
from pathlib import Path

from cellblock_kernel.cell.empty_directories import EmptyDirectories
from tests.driver import KernelTest, needs


class Arguments(KernelTest):
    def test_a_cell_has_no_arguments_and_no_file(self):
        code = "import argparse, sys\np = argparse.ArgumentParser(); p.add_argument('--n', default=3)\np.parse_args().n, sys.argv"
        self.assertEqual(self.completes(code, name="<cell 1>").values, ["(3, [''])"])
        self.assertEqual(self.completes("'__file__' in globals()", name="<cell 2>").values, [False])

    def test_code_of_a_file_has_its_name(self):
        self.completes("0", name="<cell 1>")
        ran = self.completes("import sys\nsys.argv, __file__, __name__", name="a.py")
        self.assertEqual(ran.values, ["(['a.py'], '/workspace/a.py', '__main__')"])
        self.assertEqual(self.completes("import sys\nsys.argv, '__file__' in globals()", name="<cell 3>").values, ["([''], False)"])

    def test_arguments_that_a_cell_sets_hold_for_the_next_one(self):
        self.completes("import sys; sys.argv = ['p', '--n', '5']", name="<cell 1>")
        self.assertEqual(self.completes("sys.argv", name="<cell 2>").values, ["['p', '--n', '5']"])

    def test_arguments_of_the_call_are_the_scripts(self):
        parse = "import argparse, sys\np = argparse.ArgumentParser(); p.add_argument('--n', type=int)\n(p.parse_args().n, sys.argv)"
        given = ["a.py", "--n", "5"]
        self.assertEqual(self.completes(parse, name="a.py", argv=given).values, ["(5, ['a.py', '--n', '5'])"])
        self.completes("sys.argv.pop();", name="a.py", argv=given)
        self.assertEqual(self.completes("sys.argv", name="a.py", argv=given).values, ["['a.py', '--n']"])
        self.assertEqual(self.completes("sys.argv", name="<cell 4>", argv=["-c", "x"]).values, ["['-c', 'x']"])
        self.assertEqual(self.completes("sys.argv", name="b.py").values, ["['b.py']"])

    def test_the_source_of_a_class_is_found(self):
        self.completes("class Empty:\n    pass\n", name="<cell 1>")
        self.completes("x = 1\nclass Full:\n    def f(self):\n        return 1\n", name="a.py")
        ran = self.completes("import inspect\ninspect.getsource(Empty), inspect.getsource(Full)", name="<cell 3>")
        self.assertEqual(ran.values, [repr(("class Empty:\n    pass\n", "class Full:\n    def f(self):\n        return 1\n"))])


class OpenFiles(KernelTest):
    def read(self, name):
        return (self.directory / name).read_text()

    def test_an_open_file_is_flushed(self):
        self.completes("f = open('x.csv', 'w'); f.write('a\\n'); open('y.csv', 'w').write('b\\n');")
        self.assertEqual((self.read("x.csv"), self.read("y.csv")), ("a\n", "b\n"))
        self.completes("f.write('c\\n');")
        self.assertEqual(self.read("x.csv"), "a\nc\n")

    def test_an_open_file_is_flushed_when_the_cell_fails(self):
        self.raises("f = open('x.csv', 'w'); f.write('a'); 1 / 0")
        self.assertEqual(self.read("x.csv"), "a")

    def test_compressed_files_and_those_in_containers_are_found(self):
        self.completes(
            "import gzip\nkept = {'log': [open('log', 'a'), gzip.open('z', 'wt')]}\n[it.write('x') for it in kept['log']];"
        )
        self.completes("del kept; import gc; gc.collect(); gzip.open('z', 'rt').read()")
        self.assertEqual(self.read("log"), "x")

    def test_a_misbehaving_file_class_affects_only_its_own_file(self):
        code = "import io\nclass Bad(io.FileIO):\n  def flush(self): raise ValueError('no')\nb = Bad('bad', 'w')\nf = open('good', 'w'); f.write('x');"
        self.assertIn("could not write out the open file 'bad'", self.completes(code).stderr)
        self.assertEqual(self.read("good"), "x")

    def test_files_behind_a_closed_one_are_found(self):
        self.completes("import os\nsockets = os.pipe()\nf = open('x.csv', 'w')\nos.close(sockets[0]); f.write('a');")
        self.assertEqual(self.read("x.csv"), "a")


class Empty(KernelTest):
    """`no_files` of a cell's end, in a file system that counts entries in a directory's size and in one that does not."""

    def test_a_file_in_a_collected_directory_is_seen_at_once(self):
        for place in (tempfile.mkdtemp(dir="/dev/shm"), self.directory):
            with self.subTest(place=str(place)):
                self.addCleanup(shutil.rmtree, place, ignore_errors=True)
                path = Path(place, "empty")
                path.mkdir()
                directories = EmptyDirectories()
                found = [directories.is_empty(str(path)), directories.is_empty(str(path))]
                (path / "x").touch()
                found.append(directories.is_empty(str(path)))
                (path / "x").unlink()
                found.append(directories.is_empty(str(path)))
                path.rmdir()
                found.append(directories.is_empty(str(path)))
                self.assertEqual(found, [True, True, False, True, False])


class AtTheEnd(KernelTest):
    def test_exit_handlers_run_at_the_end_of_the_last_cell(self):
        self.assertEqual(
            self.completes(
                "import atexit\natexit.register(print, 'bye')\nf = open('x', 'w')\natexit.register(f.write, 'end');"
            ).stdout,
            "",
        )
        self.assertEqual(self.completes("print('last')", last=True).stdout, "last\nbye\n")
        self.assertEqual((self.directory / "x").read_text(), "end")

    def test_a_failing_exit_handler_is_reported_and_the_others_run(self):
        ran = self.completes("import atexit\natexit.register(print, 'second')\natexit.register(lambda: 1 / 0)", last=True)
        self.assertEqual(ran.stdout, "second\n")
        self.assertIn("ZeroDivisionError", ran.stderr)

    def test_handlers_run_when_the_last_cell_fails(self):
        ran = self.run_cell("import atexit\natexit.register(print, 'bye')\n1 / 0", last=True)
        self.assertEqual((ran.done["outcome"], ran.stdout), ("raised", "bye\n"))


class Spawning(KernelTest):
    def test_a_spawned_pool_rejects_functions_of_a_cell_immediately(self):
        for method in ("spawn", "forkserver"):
            with self.subTest(method):
                code = (
                    "import multiprocessing\ndef square(x): return x * x\n"
                    f"with multiprocessing.get_context('{method}').Pool(2) as pool:\n    pool.map(square, [1, 2])"
                )
                self.assertIn("the function 'square' is defined in a cell", self.raises(code)["message"])
        code = "p = multiprocessing.get_context('spawn').Process(target=square, args=(1,))\np.start()"
        self.assertIn("get_context('fork')", self.raises(code)["message"])

    def test_a_spawned_pool_runs_functions_of_modules(self):
        code = "import math, multiprocessing\nwith multiprocessing.get_context('spawn').Pool(1) as pool:\n    roots = pool.map(math.sqrt, [4.0])\nroots"
        self.assertEqual(self.completes(code, name="a.py").values, ["[2.0]"])


class Forking(KernelTest):
    @needs("polars")
    def test_a_worker_that_waits_for_polars_says_why_it_hangs(self):
        self.kernel.begin(
            "import multiprocessing, os, time, polars as pl\nframe = pl.DataFrame({'a': [1, 2]})\n"
            "def count(_): return frame.group_by('a').len().height\n"
            "count(0)\n"
            "pool = multiprocessing.get_context('fork').Pool(2)\nprint(pool.map(str, [1]))\npool.map_async(count, [1, 2])\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
            "pool.terminate()"
        )
        self.kernel.wait_for("concurrent.futures.ThreadPoolExecutor)\n", "stderr")
        (self.directory / "go").touch()
        ran = self.kernel.finish()
        self.assertEqual((ran.done["outcome"], ran.stdout, ran.stderr.count("note: ")), ("completed", "['1']\n", 1))


class Texts(KernelTest):
    def test_a_prompt_is_printed_before_its_error(self):
        ran = self.run_cell("input('Your name: ')")
        self.assertEqual((ran.stdout, ran.exception["exception"]), ("Your name: \n", "EOFError"))

    def test_the_streams_have_the_names_of_pythons(self):
        ran = self.completes("import sys\nsys.stdin.name, sys.stdout.name, sys.stderr.name")
        self.assertEqual(ran.values, ["('<stdin>', '<stdout>', '<stderr>')"])

    def test_half_of_a_surrogate_pair_is_an_error_on_stdout_and_escaped_elsewhere(self):
        error = self.raises("print('a\\ud800')")
        self.assertEqual((error["exception"], "surrogates not allowed" in error["message"]), ("UnicodeEncodeError", True))
        ran = self.completes("import sys, os\nprint('a\\ud800', file=sys.stderr)\nprint(os.fsdecode('ä'.encode()))\n'b\\udfff'")
        self.assertEqual((ran.stdout, ran.stderr, ran.values), ("ä\n", "a\\ud800\n", ["b\\udfff"]))

    def test_a_warning_is_formatted_with_the_line_that_is_given(self):
        code = "import warnings\nwarnings.formatwarning('m', UserWarning, 'x.py', 3, line='  y = 1 ')"
        self.assertTrue(self.completes(code).values[0].endswith("UserWarning: m\n  y = 1\n"))

    def test_a_missing_network_is_explained(self):
        for code in (
            "import socket\nsocket.getaddrinfo('nowhere.invalid', 80)",
            "import urllib.request\nurllib.request.urlopen('http://nowhere.invalid')",
        ):
            with self.subTest(code):
                error = self.raises(code)
                self.assertIn("no network", error["notes"][-1])
                self.assertIn(error["notes"][-1], error["traceback"])

    def test_a_network_that_is_only_a_proxy_is_explained(self):
        code = "import os, socket\nos.environ['CELLBLOCK_EGRESS'] = '1'\nsocket.getaddrinfo('nowhere.invalid', 80)"
        notes = self.raises(code)["notes"]
        self.assertIn("only through the proxy", notes[-1])
        self.assertNotIn("no network", str(notes))

    def test_a_failed_installer_is_explained(self):
        code = "import subprocess, sys\nsubprocess.check_call(['false', 'pip', 'install', 'x'])"
        self.assertIn("`requirements`", self.raises(code)["notes"][-1])
        self.assertEqual(self.raises("import subprocess\nsubprocess.check_call(['false', 'install'])")["notes"], [])

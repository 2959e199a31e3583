"""The guard: what it refuses, and that it refuses before anything runs."""

from tests.driver import KernelTest
from tests.needs import needs


class Standard(KernelTest):
    configuration = {"guard": "standard"}

    def rejections(self, code, **fields):
        ran = self.run_cell(code, **fields)
        self.assertEqual((ran.done["outcome"], ran.outputs), ("rejected", []), code)
        return [(one["rule"], one["line"]) for one in ran.done["rejections"]]

    def test_the_environment_is_out_of_reach_in_every_shape(self):
        for code in (
            "import os; os.environ",
            "import os as o; o.environ['A']",
            "from os import environ",
            "import os; getattr(os, 'environ')",
            "import os; vars(os)['environ']",
            "import os; os.__dict__['environ']",
            "import sys; sys.modules['os'].environ",
            "__import__('os').environb",
            "import shutil; shutil.os.environ",
        ):
            with self.subTest(code):
                self.assertEqual(self.rejections(code), [("os.environ", 1)])

    def test_other_ways_to_secrets_and_processes_are_rejected(self):
        for code, rule in (
            ("import os; os.getenv('A')", "os.getenv"),
            ("from os import getenv", "os.getenv"),
            ("import subprocess; subprocess.run(['ls'])", "subprocess"),
            ("import subprocess as s; s.Popen", "subprocess"),
            ("from subprocess import run", "subprocess"),
            ("open('/proc/self/environ')", "proc.environ"),
        ):
            with self.subTest(code):
                self.assertIn((rule, 1), self.rejections(code))

    def test_a_path_in_pieces_is_rejected(self):
        for code in (
            "pid = 1; open(f'/proc/{pid}/environ')",
            "open(f'/proc/self/{\"environ\"}')",
            "open('/proc/' + 'self' + '/environ')",
            "open(b'/proc/self' + b'/environ')",
            "pid = 1; open('/proc/' + str(pid) + '/environ')",
            "from pathlib import Path; (Path('/proc') / 'self' / 'environ').read_text()",
            "from pathlib import Path; Path('/proc', 'self', 'environ').read_text()",
            "from pathlib import Path; Path('/proc').joinpath('self', 'environ').read_text()",
            "import os; open(os.path.join('/proc', 'self', 'environ'))",
            "import os; open(os.path.join('/proc/self', 'environ'))",
        ):
            with self.subTest(code):
                self.assertEqual(self.rejections(code), [("proc.environ", 1)])

    def test_a_long_sum_of_texts_is_checked_in_time(self):
        self.completes("'" + "' + '".join(["a" * 1000] * 900) + "' and None")
        # Read again from each folder, it would take minutes.
        self.completes("'" + "/proc/ " * 200_000 + "' and None")

    def test_magics_and_commands_are_checked_too(self):
        for code, rule in (
            ("!ls", "subprocess"),
            ("x = !ls", "subprocess"),
            ("%%bash\nls", "subprocess"),
            ("%sx ls", "subprocess"),
            ("%env", "os.environ"),
            ("open('/proc/1/task/1/environ')", "proc.environ"),
        ):
            with self.subTest(code):
                self.assertIn((rule, 1), self.rejections(code))

    def test_a_path_that_only_sounds_like_the_environment_is_ordinary(self):
        for code in (
            "path = 'data/processed/environment.csv'\npath, 'data/proc/environ'",
            "root = 'data'; f'{root}/proc/{root}', root + '/proc/' + root, f'/proc/{root}environ'",
            "1 / 2 + 3, [1] + [2], 'environ' + '/proc/'",
        ):
            with self.subTest(code):
                self.assertEqual(self.run_cell(code).done["outcome"], "completed")

    def test_all_findings_are_reported_with_their_lines(self):
        ran = self.run_cell("print('ran')\nimport os\nos.environ\nos.getenv('x')", line=10)
        self.assertEqual(ran.stdout, "")
        self.assertEqual([one["line"] for one in ran.done["rejections"]], [12, 13])
        self.assertEqual(
            ran.done["rejections"][0]["message"], "os.environ access is blocked in agent code (secrets are not in scope)"
        )
        self.assertIn("line 12: os.environ", ran.done["error"]["message"])

    def test_expressions_are_checked_too(self):
        self.assertIn(("os.environ", 1), self.rejections("__import__('os').environ", mode="eval"))

    def test_a_syntax_error_is_pythons_own(self):
        self.assertEqual(self.raises("import os; os.environ[")["exception"], "SyntaxError")

    def test_ordinary_code_passes(self):
        self.completes("import os\nclass A:\n  environ = 1\nA.environ, os.getcwd(), 'os.environ', eval('1')")


class Strict(Standard):
    configuration = {"guard": "strict"}

    def test_ordinary_code_passes(self):
        self.completes("class A:\n  def __init__(self): super().__init__()\nA(); sorted({1}); isinstance(1, int)")
        self.completes("open('f.txt', 'w').write('x'); open('f.txt').read()")

    def test_classes_of_every_kind_work(self):
        ran = self.completes(
            "import dataclasses, enum, typing, collections, functools\n"
            "class A:\n"
            "    def __init__(self): self._x = 1\n"
            "    @property\n"
            "    def x(self): return self._x\n"
            "    @staticmethod\n"
            "    def s(): return 2\n"
            "    @classmethod\n"
            "    def c(cls): return cls.s() + 1\n"
            "class B(A):\n"
            "    def __init__(self): super().__init__(); self._x += 3\n"
            "@dataclasses.dataclass(order=True)\n"
            "class D:\n    n: int = 5\n"
            "class N(typing.NamedTuple):\n    n: int = 6\n"
            "P = collections.namedtuple('P', 'n')\n"
            "class E(enum.Enum):\n    SEVEN = 8\n"
            "[B().x, B.c(), D().n, N().n, P(7).n, E.SEVEN.value, D(1) < D(2)]"
        )
        self.assertEqual(ran.outputs[0]["value"], "[4, 3, 5, 6, 7, 8, True]")

    @needs("pandas")
    def test_libraries_that_run_text_work(self):
        ran = self.completes("import pandas as pd\nk = 1\npd.DataFrame({'a': [1, 2]}).query('a > @k').eval('b = a + 1').b.tolist()")
        self.assertEqual(ran.outputs[0]["value"], "[3]")

    def test_a_builtin_that_only_a_run_finds_raises_with_advice(self):
        for code in (
            "globals()['__builtins__']['eval']('1')",
            "run = [value for name, value in globals().items() if name.endswith('builtins__')][0]\nrun['eval']('1')",
        ):
            with self.subTest(code):
                error = self.raises(code)
                self.assertEqual(
                    error["message"],
                    "eval is blocked in strict mode; write the expression itself, or read data with json.loads or ast.literal_eval",
                )
        self.assertEqual(self.rejections("input('name?')", mode="eval"), [("strict.builtin", 1)])

    def test_scratch_cells_and_a_reset_keep_the_builtins(self):
        code = "globals()['__builtins__']['eval']('1')"
        self.completes("globals()['__builtins__'] = None")
        self.assertEqual(self.raises(code, store=False)["exception"], "RuntimeError")
        self.kernel.ask("reset")
        self.assertEqual(self.raises(code)["exception"], "RuntimeError")

    def test_the_message_says_what_to_do_instead(self):
        ran = self.run_cell("compile('1', '', 'eval')")
        self.assertEqual(
            ran.done["rejections"][0]["message"],
            "compile is blocked in strict mode; write the code in the cell itself; re.compile is allowed",
        )

    def test_ways_around_the_language_are_rejected(self):
        for code, rule in (
            ("eval('1')", "strict.builtin"),
            ("__builtins__.eval('1')", "strict.builtin"),
            ("__builtins__['eval']('1')", "strict.builtin"),
            ("import builtins", "strict.import"),
            ("get_ipython().ev('1')", "strict.builtin"),
            ("import ctypes", "strict.import"),
            ("from socket import socket", "strict.import"),
            ("().__class__.__base__.__subclasses__()", "strict.attribute"),
            ("getattr(int, '__subclasses__')()", "strict.attribute"),
            ("print.__self__.eval('1')", "strict.attribute"),
            ("import sys; sys.modules['builtins'].eval('1')", "strict.import"),
            ("import os; os.system('ls')", "strict.process"),
        ):
            with self.subTest(code):
                self.assertEqual({one for one, _ in self.rejections(code)}, {rule})

    def test_the_environment_is_out_of_reach_in_every_shape(self):
        self.assertEqual(self.rejections("import os; os.environ"), [("os.environ", 1)])


class Off(KernelTest):
    def test_nothing_is_rejected_without_a_guard(self):
        self.completes("import os, subprocess; os.environ, subprocess.run(['true'])")

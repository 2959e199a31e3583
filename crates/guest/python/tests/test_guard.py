"""The guard: what it refuses, and that it refuses before anything runs."""

from tests.driver import KernelTest


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
        ran = self.run_cell("path = 'data/processed/environment.csv'\npath, 'data/proc/environ'")
        self.assertEqual(ran.done["outcome"], "completed", ran.done)

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
            ("import os; os.system('ls')", "strict.process"),
        ):
            with self.subTest(code):
                self.assertEqual({one for one, _ in self.rejections(code)}, {rule})

    def test_the_environment_is_out_of_reach_in_every_shape(self):
        self.assertEqual(self.rejections("import os; os.environ"), [("os.environ", 1)])


class Off(KernelTest):
    def test_nothing_is_rejected_without_a_guard(self):
        self.completes("import os, subprocess; os.environ, subprocess.run(['true'])")

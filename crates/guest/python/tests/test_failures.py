"""Exceptions: lines, tracebacks, chains, secrets, and code that does not compile."""

from tests.driver import KernelTest, needs
from tests.needs import needs_python


class Tracebacks(KernelTest):
    def test_lines_are_those_of_the_users_file(self):
        error = self.raises("def f():\n    return 1 / 0\nf()", name="co2.py", line=10)
        self.assertEqual(error["line"], 11)
        self.assertEqual([frame["line"] for frame in error["frames"]], [12, 11])
        self.assertEqual(error["frames"][1]["source"], "return 1 / 0")
        self.assertIn('File "co2.py", line 11, in f\n    return 1 / 0', error["traceback"])

    def test_library_frames_are_one_line(self):
        error = self.raises("import json\njson.loads('{')")
        self.assertEqual([frame["file"] for frame in error["frames"]], ["cell.py"])
        self.assertRegex(error["traceback"], r"… \d library frames, the last: json/decoder\.py, line \d+, in raw_decode\n")
        self.assertNotIn("site-packages", error["traceback"])

    @needs("pandas")
    def test_an_error_that_a_library_raises_again_is_shown_once(self):
        error = self.raises("import pandas as pd\npd.DataFrame({'a': [1]})['b']")
        self.assertEqual(error["traceback"].count("KeyError: 'b'"), 1)
        self.assertNotIn("direct cause", error["traceback"])

    def test_no_frame_or_path_of_the_kernel_is_shown(self):
        error = self.raises("input('name? ')")
        self.assertNotIn("cellblock", error["traceback"])
        self.assertIn("cells have no stdin", error["message"])

    def test_outputs_before_an_exception_are_kept(self):
        ran = self.run_cell("print('before')\ndisplay(1)\nraise ValueError('bad')")
        self.assertEqual((ran.values[0], ran.stdout, ran.exception["message"]), (1, "before\n", "bad"))
        self.assertEqual(ran.done["error"], {"type": "ValueError", "message": "bad", "line": 3})

    def test_causes_contexts_and_notes_are_shown(self):
        error = self.raises(
            "try:\n  {}['k']\nexcept KeyError as e:\n  e2 = ValueError('outer')\n  e2.add_note('try k2')\n  raise e2 from e"
        )
        text = error["traceback"]
        self.assertLess(text.index("KeyError: 'k'"), text.index("direct cause"))
        self.assertLess(text.index("direct cause"), text.index("ValueError: outer\ntry k2"))
        self.assertEqual(error["notes"], ["try k2"])
        during = self.raises("try:\n  1/0\nexcept ZeroDivisionError:\n  None.x")
        self.assertIn("During handling of the above exception", during["traceback"])
        alone = self.raises("try:\n  1/0\nexcept ZeroDivisionError:\n  raise ValueError from None")
        self.assertNotIn("ZeroDivisionError", alone["traceback"])

    def test_an_exception_group_shows_its_members(self):
        error = self.raises("raise ExceptionGroup('all', [ValueError('one'), TypeError('two')])")
        self.assertIn("ValueError: one", error["traceback"])
        self.assertIn("---- 2 of 2 ----\n  TypeError: two", error["traceback"])

    def test_a_deep_recursion_is_short(self):
        error = self.raises("def f(n): return f(n + 1)\nf(0)")
        self.assertEqual(error["exception"], "RecursionError")
        self.assertLess(len(error["traceback"]), 3000)
        self.assertLessEqual(len(error["frames"]), 50)

    def test_the_errno_of_an_os_error_is_reported(self):
        self.assertEqual(self.run_cell("open('/nowhere/x')").done["error"]["errno"], 2)

    # Python 3.11 suggests names only when it ends.
    @needs_python(3, 12)
    def test_names_are_suggested(self):
        self.assertIn("Did you mean: 'value'?", self.raises("value = 1\nvalu")["traceback"])

    def test_broken_exceptions_are_described(self):
        error = self.raises("class E(Exception):\n  def __str__(self): raise RuntimeError\nraise E")
        self.assertEqual((error["exception"], error["message"]), ("E", "<the exception's __str__ raised RuntimeError>"))
        lying = self.raises(
            "class M(type):\n  __name__ = property(lambda c: 1 / 0)\nclass L(Exception, metaclass=M): pass\nraise L('x')"
        )
        self.assertEqual(lying["exception"], "L")
        self.assertEqual(self.raises("class B(BaseException): pass\nraise B(3)")["message"], "3")

    def test_a_thread_prints_its_traceback_without_kernel_frames(self):
        ran = self.completes("import threading\nt = threading.Thread(target=lambda: 1 / 0, name='worker')\nt.start(); t.join()")
        self.assertIn("Exception in thread worker:\nTraceback", ran.stderr)
        self.assertIn("ZeroDivisionError: division by zero\n", ran.stderr)

    def test_long_messages_are_cut(self):
        error = self.raises("raise ValueError('x' * 1_000_000)")
        self.assertEqual(len(error["message"]), 10_000)
        self.assertLessEqual(len(error["traceback"]), 100_000)

    def test_lone_surrogates_do_not_break_the_channel(self):
        self.assertEqual(self.raises("raise ValueError('a\\udc80b')")["message"], "a\\udc80b")
        self.assertEqual(self.completes("'\\udc80'").values, ["\\udc80"])


class Secrets(KernelTest):
    def test_secrets_are_redacted(self):
        for text in (
            "GET https://x.test/a?api_key=hunter2&b=1",
            "https://x.test/?b=1&token=hunter2",
            "https://user:hunter2@x.test/",
            "Authorization: Bearer hunter2hunter2",
            "password=hunter2 is wrong",
            "{'access_token': 'hunter2'}",
        ):
            with self.subTest(text):
                error = self.raises(f"def f(): raise OSError({text!r})\nf()")
                self.assertNotIn("hunter2", error["message"])
                self.assertIn("[redacted]", error["message"])
                self.assertNotIn("hunter2", error["traceback"].splitlines()[-1])

    def test_a_secret_may_stand_in_a_long_text_of_many_short_words(self):
        # Each kind took time that grew with the square of its length: minutes for 50,000 characters.
        for word in ("a.", "a-", "token.", "?token", "a://", "Bearer "):
            with self.subTest(word):
                error = self.raises(
                    f"raise ValueError({word!r} * 500_000 + ' https://u:{{0}}@x.test/?token={{0}} password={{0}}'.format('hunter2'))"
                )
                end = "https://u:[redacted]@x.test/?token=[redacted] password=[redacted]"
                self.assertEqual(error["traceback"].splitlines()[-1][-len(end) :], end)

    def test_urls_in_source_lines_are_redacted(self):
        error = self.raises("1 / 0, 'https://x.test/?token=hunter2'")
        self.assertNotIn("hunter2", str(error))

    def test_ordinary_messages_are_left_alone(self):
        for text in ("keyword argument 'a' = 1", "tokens: expected 3", "x=1&y=2", "https://x.test/?q=1"):
            with self.subTest(text):
                self.assertEqual(self.raises(f"raise ValueError({text!r})")["message"], text)


class Compiling(KernelTest):
    def test_a_syntax_error_has_line_and_caret(self):
        error = self.raises("x = 1\nif x\n  pass", line=5)
        self.assertEqual((error["exception"], error["line"], error["message"]), ("SyntaxError", 6, "expected ':'"))
        self.assertIn('File "cell.py", line 6\n    if x\n        ^', error["traceback"])

    def test_nothing_runs_when_a_later_line_is_wrong(self):
        ran = self.run_cell("print('ran')\n)")
        self.assertEqual((ran.stdout, ran.exception["exception"]), ("", "SyntaxError"))

    def test_strange_code_is_a_syntax_error(self):
        for code in ("a\0b", "'\ud800'", "(" * 3000 + ")" * 3000, "-" * 200_000 + "1", "x = " + "[" * 150):
            with self.subTest(code[:20]):
                self.assertEqual(self.raises(code)["exception"], "SyntaxError")
        self.assertEqual(self.completes("1").values, [1])

    def test_deeply_nested_code_that_parses_is_handled(self):
        ran = self.run_cell("+".join(["1"] * 20_000))
        self.assertIn(ran.done["outcome"], ("completed", "raised"))
        self.assertEqual(self.completes("1").values, [1])


class Exits(KernelTest):
    def test_a_clean_exit_completes(self):
        for code in ("import sys; sys.exit()", "raise SystemExit(0)", "exit()", "quit(0)"):
            with self.subTest(code):
                self.assertEqual(self.completes(code).outputs, [])

    def test_an_exit_code_is_reported(self):
        ran = self.run_cell("import sys\nsys.exit(3)")
        self.assertEqual(ran.done["outcome"], "raised")
        self.assertEqual((ran.done["error"]["exit_code"], ran.done["error"]["message"]), (3, "the cell called sys.exit(3)"))

    def test_an_exit_after_an_exception_is_alone(self):
        code = (
            "import argparse\np = argparse.ArgumentParser(prog='p')\np.add_argument('--n', type=int)\np.parse_args(['--n', 'five'])"
        )
        ran = self.run_cell(code)
        self.assertNotIn("another exception", ran.exception["traceback"])
        self.assertEqual(ran.done["error"]["exit_code"], 2)
        explicit = self.run_cell("raise SystemExit(3) from ValueError('why')").exception["traceback"]
        self.assertIn("ValueError: why", explicit)

    def test_an_exit_text_is_code_one(self):
        ran = self.run_cell("import sys\nsys.exit('no data')")
        self.assertEqual(ran.done["error"]["exit_code"], 1)
        self.assertEqual(ran.done["error"]["message"], "the cell called sys.exit('no data')")

    def test_functions_that_need_a_terminal_raise_an_explanation(self):
        self.assertIn("cells have no stdin", self.raises("input()")["message"])
        self.assertIn("disabled", self.raises("breakpoint()")["message"])
        self.assertIn("Return the absolute value", self.completes("help(abs)").stdout)

"""Running cells: what is displayed, what is kept, how code is compiled."""

from tests.driver import KernelTest


class Echo(KernelTest):
    def test_the_hello_names_generation_and_python(self):
        self.assertEqual(self.kernel.hello["generation"], 6)
        self.assertRegex(self.kernel.hello["python"], r"^3\.\d+\.\d+$")

    def test_a_trailing_expression_is_displayed(self):
        ran = self.completes("x = 20\nx + 22")
        self.assertEqual(ran.outputs, [{"type": "primitive", "name": None, "value": 42, "python_type": "int"}])

    def test_a_trailing_name_names_the_output(self):
        self.assertEqual(self.completes("x = 1\nx").outputs[0]["name"], "x")

    def test_none_is_not_displayed(self):
        self.assertEqual(self.completes("None").outputs, [])

    def test_a_trailing_semicolon_mutes(self):
        for code in ("1;", "1 ; ", "1;  # comment", "(1)\t;", "'ä' * 2;", "1;\n# end\n", "f'{1}';"):
            with self.subTest(code):
                self.assertEqual(self.completes(code).outputs, [])

    def test_a_semicolon_in_a_string_or_comment_does_not_mute(self):
        for code in ("';'", "1  # ;", "'''a;\n;'''", "2; 3"):
            with self.subTest(code):
                self.assertEqual(len(self.completes(code).outputs), 1)

    def test_echo_off_displays_nothing(self):
        self.assertEqual(self.completes("1", echo=False).outputs, [])

    def test_underscore_is_the_last_value(self):
        self.completes("41")
        self.assertEqual(self.completes("_ + 1").values, [42])

    def test_an_empty_cell_completes(self):
        for code in ("", "\n", "# only a comment"):
            with self.subTest(code):
                self.assertEqual(self.completes(code).outputs, [])

    def test_display_shows_each_value_in_order(self):
        ran = self.completes("display(1, 'two')\ndisplay(3.5, name='three')\n4")
        self.assertEqual(ran.values, [1, "two", 3.5, 4])
        self.assertEqual(ran.outputs[2]["name"], "three")


class Eval(KernelTest):
    def test_an_expression_gives_exactly_one_output(self):
        self.completes("x = 5")
        self.assertEqual(self.completes("x * 2", mode="eval").values, [10])

    def test_none_is_a_value(self):
        self.assertEqual(self.completes("None", mode="eval").outputs[0]["python_type"], "NoneType")

    def test_a_display_inside_is_not_repeated(self):
        self.assertEqual(self.completes("display(1)", mode="eval").values, [1, None])

    def test_leading_space_and_a_semicolon_free_tail_are_fine(self):
        self.assertEqual(self.completes("  1 +\\\n 1  ", mode="eval").values, [2])

    def test_statements_are_rejected(self):
        self.assertIn("expected one expression", self.raises("x = 1", mode="eval")["message"])

    def test_awaiting_works(self):
        self.assertEqual(self.completes("await __import__('asyncio').sleep(0, 7)", mode="eval").values, [7])


class Store(KernelTest):
    def test_variables_live_across_cells(self):
        self.completes("x = [1]")
        self.assertEqual(self.completes("x.append(2); len(x)").values, [2])

    def test_a_scratch_run_keeps_no_names(self):
        self.completes("x = 1")
        self.assertEqual(self.completes("x = 2; y = 3; x + y", store=False).values, [5])
        self.assertEqual(self.completes("x, 'y' in globals()").values, ["(1, False)"])

    def test_a_scratch_run_can_pickle_its_own_classes(self):
        code = "import pickle\nclass A:\n  z = 1\npickle.loads(pickle.dumps(A())).z"
        self.assertEqual(self.completes(code, store=False).values, [1])

    def test_get_sends_a_variable(self):
        self.completes("x = 1.5")
        got = self.kernel.ask("get", name="x")
        self.assertEqual((got.values, got.outputs[0]["name"], got.done["outcome"]), ([1.5], "x", "completed"))

    def test_get_of_an_unknown_name_raises(self):
        got = self.kernel.ask("get", name="nope")
        self.assertEqual((got.outputs, got.done["outcome"], got.done["error"]["type"]), ([], "raised", "NameError"))

    def test_reset_forgets_variables_and_keeps_the_base_names(self):
        self.completes("x = 1; del display")
        self.assertEqual(self.kernel.ask("reset").done["outcome"], "completed")
        self.assertEqual(self.completes("'x' in globals(), callable(display)").values, ["(False, True)"])

    def test_variables_are_listed_without_calling_their_code(self):
        self.completes(
            "class Slow:\n  def __repr__(self): raise SystemExit\n  __len__ = __repr__\n"
            "a = 1; s = 'x' * 200; l = [1, 2]; o = Slow(); _hidden = 1; import os\ndef f(x): pass"
        )
        listed = self.kernel.ask("variables").done["variables"]
        self.assertEqual([one["name"] for one in listed], ["Slow", "a", "s", "l", "o", "f"])
        summaries = {one["name"]: one["summary"] for one in listed}
        self.assertEqual((summaries["a"], summaries["l"], summaries["o"]), ("1", "2 items", ""))
        self.assertIn("200 in all", summaries["s"])
        self.assertEqual(summaries["f"], "function of 1 argument")

    def test_summaries_of_one_have_a_singular_noun(self):
        self.completes("import pandas as pd\nl = [1]\ndf = pd.DataFrame({'a': [1]})\nmore = pd.DataFrame({'a': [1, 2], 'b': 0})")
        summaries = {one["name"]: one["summary"] for one in self.kernel.ask("variables").done["variables"]}
        self.assertEqual(summaries, {"l": "1 item", "df": "1 row × 1 column", "more": "2 rows × 2 columns"})


class Configuration(KernelTest):
    def test_a_layer_added_later_can_be_imported_and_is_library(self):
        layer = self.directory / "layer"
        layer.mkdir()
        (layer / "extra.py").write_text("def boom(): raise ValueError(1)\n")
        self.kernel.send({"type": "configure", "sys_path": [str(layer)]})
        error = self.raises("import extra\nextra.boom()")
        self.assertEqual([frame["function"] for frame in error["frames"]], ["<module>"])
        self.assertIn("1 library frame, the last: extra.py, line 1, in boom", error["traceback"])


class Await(KernelTest):
    def test_top_level_await_for_and_with_work(self):
        code = """
import asyncio, contextlib
async def numbers():
    for n in range(3):
        await asyncio.sleep(0)
        yield n
@contextlib.asynccontextmanager
async def scope():
    yield 'in'
total = 0
async for n in numbers():
    total += n
async with scope() as where:
    pass
await asyncio.gather(asyncio.sleep(0, total), asyncio.sleep(0, where))"""
        self.assertEqual(self.completes(code).values, ["[3, 'in']"])

    def test_all_cells_share_one_loop(self):
        self.completes("import asyncio\nevent = asyncio.Event()\nloop = asyncio.get_running_loop()\nawait asyncio.sleep(0)")
        self.assertEqual(self.completes("await asyncio.sleep(0)\nloop is asyncio.get_running_loop()").values, [True])

    def test_asyncio_run_works_as_in_a_script(self):
        self.completes("import asyncio\nawait asyncio.sleep(0)")
        self.assertEqual(self.completes("asyncio.run(asyncio.sleep(0, 5))").values, [5])
        self.assertEqual(self.completes("await asyncio.sleep(0, 6)").values, [6])

    def test_an_exception_in_an_awaited_cell_shows_its_line(self):
        error = self.raises("import asyncio\nawait asyncio.sleep(0)\n1 / 0")
        self.assertEqual((error["line"], len(error["frames"])), (3, 1))


class OrdinaryPython(KernelTest):
    def test_main_is_a_real_module(self):
        code = "import sys\nx = 1\n__name__, sys.modules['__main__'].x, sys.modules['__main__'].__dict__ is globals()"
        self.assertEqual(self.completes(code).values, ["('__main__', 1, True)"])

    def test_classes_super_dataclasses_and_pickle_work(self):
        self.completes(
            "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n  x: int = 1\n"
            "class B(A):\n  def __init__(self): super().__init__(x=2)\nB.__eq__ = lambda s, o: s.x == o.x"
        )
        self.assertEqual(self.completes("pickle.loads(pickle.dumps(B())) == B()").values, [True])

    def test_the_source_of_functions_of_every_cell_of_a_file_is_found(self):
        self.completes("def first():\n    return 1\n", name="a.py", line=1)
        self.completes("def second():\n    return 2\n", name="a.py", line=4)
        ran = self.completes("import inspect\ninspect.getsource(first) + inspect.getsource(second)", name="a.py", line=8)
        self.assertEqual(ran.values, ["def first():\n    return 1\ndef second():\n    return 2\n"])

    def test_doctest_works(self):
        code = "import doctest\ndef f():\n  '''\n  >>> f()\n  3\n  '''\n  return 3\ndoctest.testmod()"
        self.assertEqual(self.completes(code).values, ["TestResults(failed=0, attempted=1)"])

    def test_a_multiprocessing_pool_runs_functions_of_the_cell(self):
        code = (
            "import multiprocessing\ndef square(x): return x * x\n"
            "if __name__ == '__main__':\n  with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "    result = pool.map(square, [1, 2, 3])\nresult"
        )
        self.assertEqual(self.completes(code).values, ["[1, 4, 9]"])

    def test_a_module_written_by_a_cell_can_be_imported(self):
        self.completes("open('mine.py', 'w').write('def boom():\\n    raise ValueError(1)\\n');")
        error = self.raises("import mine\nmine.boom()")
        self.assertEqual([frame["function"] for frame in error["frames"]], ["<module>", "boom"])
        self.assertEqual(error["frames"][1]["source"], "raise ValueError(1)")

    def test_future_imports_hold_for_their_cell_only(self):
        code = "from __future__ import annotations\ndef f(x: undefined_name): pass\nf.__annotations__['x']"
        self.assertEqual(self.completes(code).values, ["undefined_name"])
        self.assertEqual(self.completes("def g(x: int): pass\ng.__annotations__['x'] is int").values, [True])

    def test_a_warning_is_repeated_in_the_next_cell(self):
        for _ in range(2):
            ran = self.completes("import warnings\nwarnings.warn('look out')")
            self.assertEqual(ran.stderr, "cell.py:2: UserWarning: look out\n")

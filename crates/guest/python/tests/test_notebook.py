"""Code as models write it for notebooks: indented cells, magics, `get_ipython()`, `IPython.display`."""

from cellblock_kernel.notebook import html_text
from tests.driver import KernelTest, needs


class Indented(KernelTest):
    def test_a_uniformly_indented_cell_runs(self):
        self.assertEqual(self.completes("    x = 1\n    x + 1").values, [2])
        self.assertEqual(self.completes("\n\t# why\n\tfor i in [3]:\n\t\tpass\n\ti\n").values, [3])

    def test_text_in_an_indented_cell_keeps_its_spaces(self):
        self.assertEqual(self.completes("  s = '''\n  a\nb'''\n  s").values, ["\n  a\nb"])

    def test_positions_in_an_indented_cell_are_those_of_its_text(self):
        error = self.raises("    x = 1\n    y = x / 0\n")
        self.assertEqual(error["line"], 2)
        self.assertIn("    y = x / 0\n        ~~^~~\n", error["traceback"])
        error = self.raises("    x = 1\n    y = = 2\n", line=10)
        self.assertEqual((error["exception"], error["line"]), ("SyntaxError", 11))

    def test_indentation_that_means_nothing_stays_an_error(self):
        for code, line in (("x = 1\n    y = 2", 2), ("    x = 1\n  y = 2", 2), ("    x = 1\nelse:\n    y = 2", 1)):
            with self.subTest(code):
                error = self.raises(code)
                self.assertEqual((error["exception"], error["line"]), ("IndentationError", line))

    def test_a_future_import_of_an_indented_cell_holds(self):
        code = "  from __future__ import annotations\n  def f(x: nowhere): pass\n  f.__annotations__['x']"
        self.assertEqual(self.completes(code).values, ["nowhere"])


class Magics(KernelTest):
    def test_magics_that_set_up_a_front_end_are_ignored(self):
        code = "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n%load_ext autoreload\n%autoreload 2\nx = 3\nx"
        self.assertEqual(self.completes(code).values, [3])

    def test_lines_in_strings_and_expressions_are_not_magics(self):
        code = "%matplotlib inline\ns = '''\n%time x\n!ls\n'''\nn = (7\n%4)\ns, n"
        self.assertEqual(self.completes(code).values, ["('\\n%time x\\n!ls\\n', 3)"])

    def test_errors_keep_their_lines(self):
        error = self.raises("%matplotlib inline\nimport math\n1 / 0")
        self.assertEqual((error["line"], error["frames"][0]["source"]), (3, "1 / 0"))
        self.assertEqual(self.raises("%matplotlib inline\nx = (\n")["line"], 2)
        error = self.raises("x = 1\n%nothing at all")
        self.assertEqual((error["exception"], error["line"], error["frames"][0]["source"]), ("UsageError", 2, "%nothing at all"))

    def test_commands_run_in_the_shell(self):
        ran = self.completes("name = 'a b'\n!printf '%s|' '{name}' $name {1 + 1} \\\n  end\nlines = !printf 'one\\ntwo\\n'\nlines")
        self.assertEqual((ran.stdout, ran.values), ("a b|a|b|2|end|", ["['one', 'two']"]))
        self.assertEqual(self.completes("!exit 3\n_exit_code").values, [3])
        self.assertEqual(self.completes('%%bash\necho "it\'s $((1 + 1))"').stdout, "it's 2\n")

    def test_code_is_timed(self):
        self.assertRegex(self.completes("%timeit -n 2 -r 3 len('abc')").stdout, r"± .* per loop \(.* 3 runs, 2 loops each\)")
        ran = self.completes("%%time\nx = [\n  1]\nx[0]")
        self.assertEqual(ran.values, [1])
        self.assertRegex(ran.stdout, r"^CPU times: total: .*\nWall time: ")
        self.assertEqual(self.completes("%time y = 5\ny").values, [5])
        self.assertEqual(self.raises("%%time\nx = 1\n1 / 0")["line"], 3)

    def test_installing_a_package_points_to_requirements(self):
        for code in ("%pip install no-such-package", "x = 1\n!pip install -q no-such-package", "pip install no-such-package"):
            with self.subTest(code):
                said = self.completes(code).stdout
                self.assertIn("not installed: no-such-package", said)
                self.assertIn("`requirements`", said)

    @needs("numpy")
    def test_installed_packages_are_not_requested_again(self):
        said = self.completes("!pip install numpy").stdout
        self.assertRegex(said, r"^already installed: numpy \d")
        self.assertNotIn("requirements", said)

    def test_files_are_written_and_cells_captured(self):
        self.assertEqual(self.completes("%%writefile note.txt\n  a\nb\n").stdout, "Writing note.txt\n")
        self.assertEqual((self.directory / "note.txt").read_text(), "  a\nb\n")
        self.completes("%%capture said\nprint('quiet')")
        self.assertEqual(self.completes("said.stdout").values, ["quiet\n"])

    def test_a_question_mark_shows_the_documentation(self):
        said = self.completes("def f(a, b=1):\n    'Adds.'\nf?").stdout
        self.assertIn("Signature: f(a, b=1)", said)
        self.assertIn("Adds.", said)
        self.assertIn("not found", self.completes("?nowhere").stdout)

    def test_magics_below_a_statement_run_there(self):
        self.assertEqual(self.completes("for i in range(2):\n    !echo {i}").stdout, "0\n1\n")


class IPython(KernelTest):
    def test_ipython_display_is_the_sessions_display(self):
        code = (
            "from IPython.display import HTML, Image, Markdown, clear_output, display\nfrom IPython.core.display import HTML as H\n"
            "display(HTML('<style>x</style><table><tr><td>a</td><td>b</td></tr></table><p>end</p>'))\n"
            "clear_output(wait=True)\ndisplay(Image(data=b'\\x89PNG1'), Markdown('**x**'), 5)"
        )
        ran = self.completes(code)
        self.assertEqual([output["type"] for output in ran.outputs], ["rich", "rich", "rich", "primitive"])
        self.assertEqual([output.get("text") for output in ran.outputs[:3]], ["a\tb\nend", "<image/png of 5 bytes>", "**x**"])
        self.assertEqual([output["mimes"] for output in ran.outputs[:3]], [["text/html"], ["image/png"], ["text/markdown"]])
        self.assertEqual(ran.blobs[1], [b"\x89PNG1"])

    def test_a_handle_replaces_what_it_has_shown(self):
        code = "handle = display({'text/html': '<b>x</b>', 'text/plain': 'x'}, raw=True, display_id=True)\nhandle.update('y')"
        ran = self.completes(code)
        self.assertEqual((ran.outputs[0]["text"], ran.outputs[1]["value"]), ("x", "y"))
        first, second = ran.frames
        self.assertEqual((first["update"], second["update"]), (False, True))
        self.assertEqual(first["display_id"], second["display_id"])
        # A later cell reaches the display by the same handle, or by its id.
        later = self.completes("from IPython.display import update_display\nupdate_display(3, display_id=handle.display_id)")
        self.assertEqual([(it["display_id"], it["update"]) for it in later.frames], [(first["display_id"], True)])
        code = "from IPython.display import DisplayHandle, publish_display_data\nhandle = DisplayHandle('a')\nhandle.display(1)\n"
        code += "publish_display_data({'text/plain': 'b'}, transient={'display_id': 'a'}, update=True)\ndisplay(2)"
        shown = [(it.get("display_id"), it.get("update")) for it in self.completes(code).frames]
        self.assertEqual(shown, [("a", False), ("a", True), (None, None)])
        self.assertEqual(self.raises("display(1, update=True)")["exception"], "TypeError")

    def test_outputs_are_cleared_now_or_with_the_next_one(self):
        code = (
            "from IPython.display import clear_output\ndisplay(1)\nclear_output()\nprint('x')\nclear_output(wait=True)\ndisplay(2)"
        )
        ran = self.completes(code)
        frames = [(it["type"], it.get("wait")) for it in ran.frames]
        self.assertEqual(frames, [("output", None), ("clear", False), ("clear", True), ("output", None)])
        self.assertEqual(
            [it["type"] for it in self.completes("display(1)\ndisplay(2, clear=True)").frames], ["output", "clear", "output"]
        )

    def test_the_last_of_very_many_updates_is_shown(self):
        code = (
            "handle = display(-1, display_id=True)\nother = display('o', display_id=True)\nfor i in range(5000): handle.update(i)"
        )
        ran = self.completes(code)
        self.assertEqual(ran.values[-1], 4999)
        self.assertLess(len(ran.outputs), 4100)
        code = "from IPython.display import clear_output\nfor i in range(5000):\n    clear_output(wait=True)\n    display(i)"
        self.assertEqual(self.completes(code).values[-1], 4999)

    def test_outside_of_a_cell_nothing_is_cleared(self):
        code = "import os\nfrom IPython.display import clear_output\ndisplay(1)\npid = os.fork()\nif pid == 0:\n    clear_output()\n    os._exit(0)\n"
        ran = self.completes(code + "os.waitpid(pid, 0)[1]")
        self.assertEqual((ran.values, [it["type"] for it in ran.frames]), ([1, 0], ["output", "output"]))

    def test_a_picture_of_the_web_says_that_there_is_no_network(self):
        self.assertIn("no network", self.raises("from IPython.display import Image\nImage('https://example.com/a.png')")["message"])

    def test_get_ipython_exists_for_cells_but_not_for_libraries(self):
        code = (
            "import IPython, types\nlibrary = types.ModuleType('library')\n"
            "exec(compile('def find():\\n    return get_ipython()', '<library>', 'exec'), library.__dict__)\n"
            "get_ipython().run_line_magic('matplotlib', 'inline')\n"
            "get_ipython() is not None, IPython.get_ipython() is get_ipython(), library.find()"
        )
        self.assertEqual(self.completes(code).values, ["(True, True, None)"])

    def test_ipython_is_not_claimed_to_be_installed(self):
        code = "import importlib.metadata as m, sys\nbefore = 'IPython' in sys.modules\ntry:\n    m.version('ipython')\n"
        self.assertEqual(
            self.completes(code + "except m.PackageNotFoundError:\n    before = before, None\nbefore").values, ["(False, None)"]
        )

    @needs("matplotlib", "pandas", "altair")
    def test_libraries_that_look_for_a_notebook_find_none(self):
        code = (
            "import IPython.display, altair, matplotlib.pyplot as plt, pandas as pd\nfrom pandas.io.formats import console\n"
            "plt.plot([1, 2]); plt.show()\n"
            "altair.Chart(pd.DataFrame({'x': [1]})).mark_point().encode(x='x').display()\n"
            "console.in_ipython_frontend(), matplotlib.pyplot._REPL_DISPLAYHOOK.name"
        )
        ran = self.completes(code.replace("import IPython", "import matplotlib, IPython"))
        self.assertEqual(ran.values[-1], "(False, 'PLAIN')")
        self.assertEqual([output["type"] for output in ran.outputs[:-1]], ["figure", "figure"])

    def test_words_of_html_stay_apart(self):
        for html, text in (
            ("Total <b>12</b> units", "Total 12 units"),
            ("1 <b>000</b>", "1 000"),
            ("<p>one <i>two</i> three</p>", "one two three"),
            ("a<b>b</b>c", "abc"),
            ("x  <b> y</b>", "x y"),
            ("<table><tr><td>1</td> <td> 2 </td></tr></table>", "1\t2"),
        ):
            with self.subTest(html):
                self.assertEqual(html_text.of(html), text)


class Limited(KernelTest):
    configuration = {"limits": {"outputs": 3}}

    def test_a_loop_that_clears_or_updates_may_show_more_than_the_limit(self):
        clears = "from IPython.display import clear_output\nfor i in range(10):\n    clear_output(wait=True)\n    display(i)"
        ran = self.completes(clears)
        self.assertEqual((ran.values, ran.done["outputs_dropped"]), (list(range(10)), 0))
        updates = "handle = display(0, display_id=True)\nfor i in range(1, 10): handle.update(i)"
        ran = self.completes(updates)
        self.assertEqual((ran.values, ran.done["outputs_dropped"]), (list(range(10)), 0))
        ran = self.completes("for i in range(10): display(i, display_id=str(i))")
        self.assertEqual((len(ran.outputs), ran.done["outputs_dropped"]), (3, 7))

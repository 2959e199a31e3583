"""Figures that a cell leaves open: in sessions and in one-shot runs, whose exit handlers run, with and without a template."""

from tests.driver import KernelTest, needs

PLT = "import matplotlib.pyplot as plt\n"


class Figures:
    """What holds in every kernel and for every cell; `last` says whether exit handlers run."""

    last = False

    def restart(self):
        """Starts a kernel that has not imported pyplot, where that can matter later: its import registers an exit handler."""
        if self.last and "preload" not in self.configuration:
            self.start_kernel()

    def shown(self, code, outcome="completed"):
        """Runs a cell, and returns each output as `figure` with its title, or by its value."""
        ran = self.run_cell(code, last=self.last)
        self.assertEqual((ran.done["outcome"], ran.stderr), (outcome, ""), ran.outputs[-1:])
        return [("figure", one["title"]) if one["type"] == "figure" else one.get("value") or one["type"] for one in ran.outputs]

    def test_a_figure_left_open_is_shown_once_however_pyplot_is_imported(self):
        draw = "plt.plot([1, 2]); plt.title('t')\n"
        imports = (
            PLT,
            "import matplotlib as mpl\nmpl.use('Agg')\nimport matplotlib.pyplot as plt\n",
            "from matplotlib import pyplot as plt\n",
            "import matplotlib.pyplot\nplt = matplotlib.pyplot\n",
            "import importlib\nplt = importlib.import_module('matplotlib.pyplot')\n",
            "def late():\n    import matplotlib.pyplot as plt\n    return plt\nplt = late()\n",
            "",
        )
        ends = (
            "",
            "plt.gcf()",
            "plt.gca()",
            "plt.show()",
            "plt.show(block=False)",
            "plt.gcf().show()",
            "plt.savefig('x.png')",
            "display(plt.gcf())",
            "display(plt.gcf()); plt.show()",
            "plt.show(); plt.close('all')",
        )
        # Each import and each end once.
        for number in range(max(len(imports), len(ends))):
            start, end = imports[number % len(imports)], ends[number % len(ends)]
            with self.subTest(start + end):
                if "preload" not in self.configuration:
                    self.start_kernel()
                self.assertEqual(self.shown(start + draw + end), [("figure", "t")])

    def test_show_and_what_is_left_open_after_it(self):
        code = PLT + "plt.plot([1]); plt.title('a'); plt.show()\ndisplay('between')\nplt.plot([2]); plt.title('b')"
        self.assertEqual(self.shown(code), [("figure", "a"), "between", ("figure", "b")])

    def test_show_shows_also_after_a_cell_that_replaced_it(self):
        self.completes(PLT + "plt.show = lambda *a, **k: None")
        self.assertEqual(self.shown("plt.plot([1]); plt.title('t'); plt.show(); plt.close('all')"), [("figure", "t")])

    def test_a_cell_that_raises_shows_its_figures(self):
        self.assertEqual(self.shown(PLT + "plt.plot([1]); plt.title('t')\n1 / 0", "raised"), [("figure", "t"), "exception"])
        self.restart()
        self.assertEqual(self.shown(PLT + "plt.plot([1]); plt.title('t')\nraise SystemExit"), [("figure", "t")])

    def test_a_broken_figure_does_not_hide_the_others(self):
        code = PLT + "plt.figure(); plt.title(r'$\\undefinedmacro$')\nplt.figure(); plt.plot([1]); plt.title('t')\n"
        ran = self.run_cell(code, last=self.last)
        self.assertEqual([one.get("title") for one in ran.outputs], ["t", None])
        self.assertIn("the figure can not be drawn", ran.exception["message"])

    def test_a_value_comes_before_the_figures(self):
        self.assertEqual(self.shown(PLT + "plt.plot([1]); plt.title('t')\n42"), [42, ("figure", "t")])

    def test_a_converted_figure_is_shown_once(self):
        code = (
            "import cellblock\n" + PLT + "cellblock.register('matplotlib.figure.Figure', lambda one: 'converted')\n"
            "plt.plot([1]); display(plt.gcf())"
        )
        self.assertEqual(self.shown(code), ["converted"])

    @needs("pandas")
    def test_charts_of_pandas(self):
        for end in ("", "\nNone", "\nimport matplotlib.pyplot as plt; plt.show()"):
            with self.subTest(end):
                self.restart()
                self.assertEqual(
                    self.shown(f"import pandas as pd\npd.DataFrame({{'x': [1, 2]}}).plot(title='t'){end}"), [("figure", "t")]
                )

    @needs("seaborn", "pandas")
    def test_charts_of_seaborn(self):
        frame = "import pandas as pd, seaborn as sns\nframe = pd.DataFrame({'x': [1, 2], 'y': [3, 4]})\n"
        for code in (
            "sns.lineplot(frame, x='x', y='y').set_title('t')",
            "sns.relplot(frame, x='x', y='y').set(title='t')",
            "sns.relplot(frame, x='x', y='y').set(title='t'); import matplotlib.pyplot as plt; plt.show()",
            "grid = sns.relplot(frame, x='x', y='y').set(title='t'); display(grid)",
        ):
            with self.subTest(code):
                self.restart()
                self.assertEqual(self.shown(frame + code), [("figure", "t")])

    def test_a_second_cell(self):
        self.completes(PLT)
        self.assertEqual(self.shown("plt.plot([1]); plt.title('t'); plt.show()"), [("figure", "t")])


class Handlers:
    """Exit handlers of the last cell that draw."""

    last = True

    def test_a_handler_that_draws(self):
        for end in ("", "; plt.show()"):
            # Whether matplotlib's own handler would run before or after it.
            for first, second in ((PLT, "import atexit\n"), ("import atexit\n", PLT)):
                code = f"def draw(): plt.plot([1]); plt.title('late'){end}\natexit.register(draw)\nplt.plot([1]); plt.title('t')"
                with self.subTest(first + second + code):
                    self.restart()
                    self.assertEqual(self.shown(first + second + code), [("figure", "t"), ("figure", "late")])

    def test_a_handler_that_imports_pyplot(self):
        code = "import atexit\n@atexit.register\ndef draw():\n  import matplotlib.pyplot as plt\n  plt.plot([1]); plt.title('late')"
        self.assertEqual(self.shown(code), [("figure", "late")])

    def test_a_handler_that_closes_or_saves_figures_comes_after_they_are_shown(self):
        code = "import atexit\natexit.register(plt.close, 'all')\nplt.plot([1]); plt.title('t')"
        self.assertEqual(self.shown(PLT + code), [("figure", "t")])

    def test_a_handler_of_a_cell_that_raises(self):
        code = "import atexit\n@atexit.register\ndef draw(): plt.plot([1]); plt.title('late')\nplt.plot([1]); plt.title('t')\n1 / 0"
        self.assertEqual(self.shown(PLT + code, "raised"), [("figure", "t"), ("figure", "late"), "exception"])

    def test_a_handler_that_never_returns_comes_after_the_figures(self):
        self.kernel.begin(PLT + "import atexit, time\natexit.register(time.sleep, 1000)\nplt.plot([1])", last=True)
        header, _ = self.kernel._frame()
        self.assertEqual(header["output"]["type"], "figure")
        # The process is killed as the host would at its deadline.
        self.kernel.process.kill()


@needs("matplotlib")
class Sessions(Figures, KernelTest):
    configuration = {"prelude": ["analysis"]}


@needs("matplotlib")
class LastCells(Handlers, Figures, KernelTest):
    configuration = {"prelude": ["analysis"]}


@needs("matplotlib")
class SessionsWithTemplate(Figures, KernelTest):
    configuration = {"preload": ["matplotlib.pyplot"], "prelude": ["analysis"]}


@needs("matplotlib")
class LastCellsWithTemplate(Handlers, Figures, KernelTest):
    configuration = {"preload": ["matplotlib.pyplot"], "prelude": ["analysis"]}

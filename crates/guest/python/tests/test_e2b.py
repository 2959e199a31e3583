"""Values as the dialect E2B sends them."""

from tests.driver import KernelTest, needs

# As the dialect's setup code does.
SETUP = "from cellblock_kernel.e2b import session\nsession.install(display, globals(), '.', {})"


class E2b(KernelTest):
    def setUp(self):
        super().setUp()
        self.setup()

    def setup(self):
        ran = self.kernel.ask("setup", code=SETUP, name="<setup>", guarded=False)
        self.assertEqual(ran.done["outcome"], "completed", ran.done)

    def forms(self, code):
        """Runs a cell with one output, and returns its name, its text and its other forms."""
        ran = self.completes(code)
        self.assertEqual(len(ran.outputs), 1, ran.outputs)
        (output,) = ran.outputs
        return output["name"], output.get("text", output.get("value")), dict(zip(output.get("mimes", ()), ran.blobs[0]))

    @needs("matplotlib")
    def test_a_figure_that_is_displayed_is_not_repeated(self):
        plt = "import matplotlib.pyplot as plt\n"
        for end in ("plt.gcf()", "display(plt.gcf())", "plt.show()", "None"):
            with self.subTest(end):
                name, text, forms = self.forms(f"{plt}plt.plot([1, 2])\n{end}")
                self.assertEqual((text, list(forms)), ("<Figure size 640x480 with 1 Axes>", ["image/png", "e2b/chart"]))
                self.assertEqual(name, "e2b:main" if end == "plt.gcf()" else None)

    @needs("pandas", "pyarrow")
    def test_what_is_no_frame_of_pandas_is_its_repr(self):
        self.completes("import pandas as pd, pyarrow as pa\nframe = pd.DataFrame({'a': [1, 2]})")
        for code, text in (
            ("frame.a", "0    1\n1    2\nName: a, dtype: int64"),
            ("frame.a.value_counts()", "a\n1    1\n2    1\nName: count, dtype: int64"),
            ("frame.dtypes", "a    int64\ndtype: object"),
            ("frame.columns == ['a']", "array([ True])"),
            ("pa.table({'a': [1]})", "pyarrow.Table\na: int64\n----\na: [[1]]"),
            ("pa.record_batch({'a': [1]})", "pyarrow.RecordBatch\na: int64\n----\na: [1]"),
        ):
            with self.subTest(code):
                self.assertEqual(self.forms(code), ("e2b:main", text, {}))
        name, text, forms = self.forms("frame")
        self.assertEqual((name, text, list(forms)), ("e2b:main", "   a\n0  1\n1  2", ["text/html", "e2b/data"]))
        self.assertEqual(self.forms("display(frame.a)"), (None, "0    1\n1    2\nName: a, dtype: int64", {}))

    def test_items_of_data_have_no_address(self):
        _, text, forms = self.forms("class A: pass\n[1, A()]")
        self.assertEqual((text, forms), ("[1, <__main__.A object>]", {"application/json": b'[1, "<__main__.A object>"]'}))

    @needs("duckdb")
    def test_a_relation_is_its_repr(self):
        # Newer versions have HTML, too.
        name, text, _ = self.forms("import duckdb\nduckdb.sql('select 7 as answer')")
        self.assertEqual((name, "answer" in text and "7" in text), ("e2b:main", True))

"""Values whose libraries would open a window or a browser, or that have HTML only: everyone gets a text, and never an address."""

import json

from tests.driver import KernelTest, needs

# As much of Plotly as the kernel meets.
PLOTLY = {
    "__init__": "",
    "basedatatypes": (
        "import json\n"
        "class BaseFigure:\n"
        "    def __init__(self, spec): self.spec = spec\n"
        "    def to_json(self): return json.dumps(self.spec)\n"
        "    def to_html(self, include_plotlyjs): return f'<html>{include_plotlyjs}</html>'\n"
        "    def show(self, *arguments, **options):\n"
        "        from plotly.io import _renderers\n"
        "        return _renderers.show(self, *arguments, **options)\n"
    ),
    "graph_objects": "from plotly.basedatatypes import BaseFigure as Figure",
    "io/__init__": "",
    "io/_renderers": "def show(fig, *arguments, **options): raise ValueError('no browser')",
}


class Values(KernelTest):
    def shown(self, code):
        """Runs a cell with one output, and returns its text and its other forms."""
        ran = self.completes(code)
        self.assertEqual((len(ran.outputs), ran.stderr), (1, ""), ran.outputs)
        (output,), (blobs,) = ran.outputs, ran.blobs
        return output.get("text", output.get("value")), dict(zip(output.get("mimes", ()), blobs))


class Texts(Values):
    def test_no_text_has_an_address(self):
        self.completes("class A:\n  def f(self): pass\n")
        for code, text in (
            ("A()", "<__main__.A object>"),
            ("A.f", "<function A.f>"),
            ("A().f", "<bound method A.f of <__main__.A object>>"),
            ("lambda: 1", "<function <lambda>>"),
            ("(x for x in ())", "<generator object <genexpr>>"),
            ("[A(), {'k': (A(),)}]", "[<__main__.A object>, {'k': (<__main__.A object>,)}]"),
            ("memoryview(b'')", "<memory>"),
        ):
            with self.subTest(code):
                self.assertEqual(self.shown(code), (text, {}))

    def test_texts_of_the_user_are_left_alone(self):
        for code in ("['<x at 0x7fff0000>']", "'<x at 0x7fff0000>'", "[['<x at 0x7fff0000>'], {'<x at 0x7fff0000>': 1}]"):
            with self.subTest(code):
                self.assertEqual(self.shown(code)[0].strip("'"), code.strip("'"))

    @needs("PIL")
    def test_addresses_with_capital_letters_are_left_out_too(self):
        shown = self.shown("from PIL import Image\n[Image.new('RGB', (9, 9)) for _ in range(8)]")[0]
        self.assertNotIn(" at 0x", shown)

    @needs("pandas")
    def test_objects_of_libraries_have_no_address_and_their_data_is_left_alone(self):
        self.assertEqual(
            self.shown("import pandas as pd\npd.DataFrame({'a': [1]}).groupby('a')")[0],
            "<pandas.api.typing.DataFrameGroupBy object>",
        )
        self.assertEqual(self.shown("pd.Index(['<x at 0x7fff0000>']).tolist()")[0], "['<x at 0x7fff0000>']")
        self.assertIn("<x at 0x7fff0000>", self.shown("pd.Index(['<x at 0x7fff0000>'])")[0])

    def test_html_without_a_text_is_read(self):
        html = "<table><tr><td>1</td><td>2</td></tr></table><style>x</style>"
        self.assertEqual(self.shown(f"class H:\n  def _repr_html_(self): return '{html}'\nH()")[0], "1\t2")
        forms = "def _repr_mimebundle_(self, **_): return {'text/html': '<b>b</b>', 'text/plain': object.__repr__(self)}"
        self.assertEqual(self.shown(f"class M:\n  {forms}\nM()")[0], "b")
        self.assertEqual(self.shown("class E:\n  def _repr_html_(self): return '<i></i>'\nE()")[0], "<__main__.E object>")

    @needs("jinja2", "pandas")
    def test_a_styled_table_is_read(self):
        text, forms = self.shown("import pandas as pd\npd.DataFrame({'a': [1.5, 2]}).style.format('{:.2f} €')")
        self.assertEqual((text.split(), list(forms)), (["a", "0", "1.50", "€", "1", "2.00", "€"], ["text/html"]))

    @needs("polars")
    def test_a_plan_of_polars_is_read(self):
        text, _ = self.shown("import polars as pl\npl.LazyFrame({'a': [1]})")
        self.assertTrue(text.startswith("naive plan:"), text)

    def test_the_first_picture_in_html_is_a_picture(self):
        code = 'from IPython.display import HTML\nHTML(\'<p>p</p><img alt="a" src="data:image/png;base64,AAEC">\')'
        text, forms = self.shown(code)
        self.assertEqual((text, forms["image/png"]), ("p\n<picture: a>", b"\0\1\2"))
        text, forms = self.shown("HTML('<script>x = \"data:image/png;base64,AAEC\"</script>y')")
        self.assertEqual((text, list(forms)), ("y", ["text/html"]))


class Pictures(Values):
    @needs("PIL")
    def test_a_picture_is_shown(self):
        for code in ("from PIL import Image\nImage.new('RGB', (3, 2)).show()", "Image.new('RGB', (3, 2)).show('title')"):
            (output,) = self.completes(code).outputs
            self.assertEqual((output["type"], output["width"], output["height"]), ("image", 3, 2))

    @needs("seaborn", "pandas")
    def test_a_plot_of_seaborn_objects_is_a_figure_however_it_is_shown(self):
        self.completes(
            "import pandas as pd, seaborn.objects as so\n"
            "plot = so.Plot(pd.DataFrame({'a': [1, 2]}), x='a', y='a').add(so.Line()).label(title='t')"
        )
        for code in ("plot", "display(plot)", "plot.show()", "plot.plot()", "None\nplot.add(so.Dot())"):
            with self.subTest(code):
                (output,) = self.completes(code).outputs
                self.assertEqual((output["type"], output["title"], len(output["series"])), ("figure", "t", 1 + ("Dot" in code)))

    @needs("matplotlib")
    def test_an_animation_is_its_first_picture_or_the_form_that_code_chooses(self):
        self.completes(
            "import matplotlib.pyplot as plt\nfrom matplotlib.animation import FuncAnimation\nfrom IPython.display import HTML\n"
            "def made(title):\n"
            "    fig, ax = plt.subplots(figsize=(1, 1)); line, = ax.plot([0, 1]); ax.set_title(title)\n"
            "    return FuncAnimation(fig, lambda n: line.set_data([0, n], [0, n]), frames=3)\n"
        )
        for code in ("made('t')", "a = made('t'); plt.close(); a", "display(made('t'))", "a = made('t'); plt.show()"):
            with self.subTest(code):
                (output,) = self.completes(code).outputs
                self.assertEqual((output["type"], output["title"]), ("figure", "t"))
        for code in ("HTML(made('t').to_jshtml())", "a = made('t'); plt.rcParams['animation.html'] = 'jshtml'; a"):
            with self.subTest(code):
                ran = self.completes("plt.close('all')\n" + code.replace("; a", "; plt.close(); a"))
                output = ran.outputs[0]
                self.assertEqual((output["text"], output["mimes"]), ("<animation of 3 pictures>", ["text/html", "image/png"]))

    @needs("matplotlib")
    def test_a_color_map_is_shown_while_a_figure_is_open(self):
        ran = self.completes("import matplotlib.pyplot as plt\nplt.plot([1]); plt.get_cmap('viridis')")
        self.assertEqual([output["type"] for output in ran.outputs], ["rich", "figure"])


class Plotly(Values):
    def setUp(self):
        super().setUp()
        for name, text in PLOTLY.items():
            path = self.directory / "plotly" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    SPEC = {
        "data": [
            {"type": "bar", "name": "b", "x": ["Jan", "Feb"], "y": {"dtype": "i2", "bdata": "AQAFAA=="}},
            {"x": [1, 2, 3], "y": [0.5, float("nan"), 2]},
            {"type": "heatmap", "z": [[1, 2, 3], [4, 5, 6]], "xaxis": "x2", "yaxis": "y2"},
        ],
        "layout": {"title": {"text": "Sales"}, "xaxis": {"title": {"text": "month"}}},
    }

    @needs("numpy", "matplotlib")
    def test_a_figure_is_its_specification_a_text_and_a_picture_however_it_is_shown(self):
        self.completes(f"from plotly.graph_objects import Figure\nnan = float('nan')\nfig = Figure({self.SPEC})")
        for code in (
            "fig",
            "fig.show()",
            "fig.show(renderer='browser')",
            f"from plotly.io import _renderers\n_renderers.show({self.SPEC})",
        ):
            with self.subTest(code):
                text, forms = self.shown(code)
                self.assertEqual(
                    text.splitlines(),
                    [
                        "Plotly figure “Sales” (approximate picture, drawn from its data by matplotlib)",
                        "- axes: x “month”",
                        "- bar “b”: 2 points, x from Jan to Feb, y between 1 and 5",
                        "- scatter: 3 points, x between 1 and 3, y between 0.5 and 2",
                        "- heatmap: 2 × 3 values",
                    ],
                )
                self.assertEqual(list(forms), ["application/vnd.plotly.v1+json", "text/html", "image/png"])
                spec = json.loads(forms["application/vnd.plotly.v1+json"])
                self.assertEqual((spec["data"][0]["y"], spec["data"][1]["y"]), ([1, 5], [0.5, None, 2]))
                self.assertEqual(forms["text/html"], b"<html>cdn</html>")


class Media(Values):
    def test_sound_and_films_are_elements_and_say_their_size(self):
        self.completes(
            "from IPython.display import Audio, Video, IFrame, FileLinks, YouTubeVideo\nopen('a.mp4', 'wb').write(b'abc');"
        )
        text, forms = self.shown("Audio([0.0, 0.5, -0.5], rate=8000)")
        self.assertEqual(
            (text, list(forms), forms["audio/wav"][:4]), ("<audio/wav of 50 bytes>", ["text/html", "audio/wav"], b"RIFF")
        )
        text, forms = self.shown("Video('a.mp4')")
        self.assertEqual((text, forms["video/mp4"]), ("<video/mp4 of 3 bytes: a.mp4>", b"abc"))
        text, forms = self.shown("Audio(url='https://a.test/a.mp3')")
        self.assertEqual((text, list(forms)), ("<audio at https://a.test/a.mp3, which is loaded only by browsers>", ["text/html"]))

    def test_pages_and_folders_are_named(self):
        (self.directory / "sub").mkdir()
        (self.directory / "sub" / "a.csv").touch()
        self.completes("from IPython.display import *\nfrom IPython.lib.display import YouTubeVideo")
        text, forms = self.shown("IFrame('https://a.test/?a=\"', 10, 20)")
        self.assertEqual(text, '<page at https://a.test/?a=", which is loaded only by browsers>')
        self.assertIn(b'src="https://a.test/?a=&quot;"', forms["text/html"])
        self.assertEqual(self.shown("FileLinks('sub')"), ("sub/\n  a.csv", {}))
        self.assertIn("youtube.com/embed/x", self.shown("YouTubeVideo('x')")[0])
        self.assertIn("Audio", self.raises("from IPython.display import Nothing")["message"])

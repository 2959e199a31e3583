"""Figures: matplotlib, Altair, Vega-Lite, images and anything with `_repr_*_`."""

import struct

from tests.driver import KernelTest, needs

PLT = "import matplotlib.pyplot as plt\n"


def size_of(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


@needs("matplotlib")
class Matplotlib(KernelTest):
    def figures(self, code):
        ran = self.completes(PLT + code)
        for output, blobs in zip(ran.outputs, ran.blobs):
            self.assertEqual((output["type"], output["library"]), ("figure", "matplotlib"))
            self.assertEqual(size_of(blobs[0]), (output["width"], output["height"]))
        return ran.outputs

    def test_every_open_figure_is_captured_in_order_and_closed(self):
        shown = self.figures("for n in range(3):\n  plt.figure(); plt.plot([n]); plt.title(f't{n}')")
        self.assertEqual(
            [(one["name"], one["title"]) for one in shown], [("figure_1", "t0"), ("figure_2", "t1"), ("figure_3", "t2")]
        )
        self.assertEqual(self.completes("plt.get_fignums()").values, ["[]"])

    def test_show_captures_at_once_and_without_warnings(self):
        ran = self.completes(PLT + "plt.plot([1]); plt.show()\ndisplay('between')\nplt.plot([2]); plt.show()")
        self.assertEqual([one["type"] for one in ran.outputs], ["figure", "primitive", "figure"])
        self.assertEqual(ran.stderr, "")
        ran = self.completes("import matplotlib; matplotlib.use('Agg')\nplt.plot([1]); plt.show()\ndisplay('after')")
        self.assertEqual(([one["type"] for one in ran.outputs], ran.stderr), (["figure", "primitive"], ""))

    def test_return_values_of_plotting_calls_are_not_displayed(self):
        for code in (
            "plt.plot([1, 2])",
            "plt.bar(['a'], [1])",
            "plt.hist([1, 2, 2])",
            "plt.gca().set_title('x')",
            "plt.subplots(2, 2)",
            "plt.subplots(2)[1]",
            "fig, ax = plt.subplots(); ax.plot([1]); ax",
            "fig, ax = plt.subplots(); ax.plot([1]); fig",
            "plt.boxplot([1, 2])",
            "plt.pie([1, 2])",
        ):
            with self.subTest(code):
                self.assertEqual(len(self.figures(code)), 1)

    def test_a_displayed_figure_is_not_repeated(self):
        shown = self.figures("fig, ax = plt.subplots(); ax.plot([1]); display(fig, name='mine')")
        self.assertEqual([one["name"] for one in shown], ["mine"])
        self.assertEqual(len(self.figures("display(fig)")), 1)

    def test_figures_are_kept_when_the_cell_raises(self):
        ran = self.run_cell(PLT + "plt.plot([1])\n1 / 0")
        self.assertEqual([one["type"] for one in ran.outputs], ["figure", "exception"])
        self.assertEqual(ran.exception["exception"], "ZeroDivisionError")

    def test_an_empty_figure_is_not_shown(self):
        self.assertEqual(self.figures("plt.figure()"), [])

    def test_a_figure_that_cannot_be_drawn_is_an_error(self):
        error = self.raises(PLT + "plt.title(r'$\\undefinedmacro$')")
        self.assertIn("the figure can not be drawn: ValueError", error["message"])
        self.assertEqual(self.completes("plt.get_fignums()").values, ["[]"])

    def test_the_users_own_file_is_written(self):
        self.figures("plt.plot([1]); plt.savefig('mine.png')")
        self.assertEqual(size_of((self.directory / "mine.png").read_bytes()), (640, 480))

    def test_series_are_extracted(self):
        (shown,) = self.figures(
            "import datetime\nfig, ax = plt.subplots(2, 3)\nday = datetime.date(2024, 1, 1)\n"
            "ax[0, 0].plot([day, day.replace(day=2)], [1, float('nan')], label='line')\n"
            "ax[0, 1].bar(['a', 'b'], [3, 4]); ax[0, 2].scatter([1, 2], [3, 4], label='dots')\n"
            "ax[1, 0].hist([1, 1, 2], bins=2); ax[1, 1].fill_between([0, 1], [1, 2]); ax[1, 2].imshow([[1, 2]])\n"
            "ax[0, 1].set(title='T', xlabel='X', ylabel='Y'); fig.suptitle('Whole');"
        )
        self.assertEqual((shown["title"], shown["axes"][1]), ("Whole", {"title": "T", "xlabel": "X", "ylabel": "Y"}))
        kinds = [(one["axes"], one["kind"], one["label"], one["points"]) for one in shown["series"]]
        self.assertEqual(
            kinds,
            [
                (0, "line", "line", 2),
                (1, "bar", "", 2),
                (2, "scatter", "dots", 2),
                (3, "hist", "", 2),
                (4, "area", "", 2),
                (5, "heatmap", "", 2),
            ],
        )
        line, bar, dots, hist, area, heatmap = shown["series"]
        self.assertEqual((area["x"], area["y"], area.get("columns")), ([0.0, 1.0], [1.0, 2.0], None))
        self.assertEqual((heatmap["x"], heatmap["y"], heatmap["columns"]), ([0.0, 1.0], [0.0, 0.0], {"z": [1, 2]}))
        self.assertEqual((line["x"], line["y"]), (["2024-01-01", "2024-01-02"], [1, None]))
        self.assertEqual((bar["x"], bar["y"]), (["a", "b"], [3, 4]))
        self.assertEqual((dots["x"], dots["y"]), ([1.0, 2.0], [3.0, 4.0]))
        self.assertEqual((hist["x"], hist["y"]), ([1.25, 1.75], [2.0, 1.0]))
        self.assertEqual(hist["columns"], {"from": [1.0, 1.5], "to": [1.5, 2.0]})

    def test_a_missing_letter_warns_once(self):
        # A letter that no font of the image has either.
        ran = self.completes(PLT + "plt.title(chr(0x12000)); plt.plot([1]); plt.show()")
        self.assertEqual(ran.stderr.count("CUNEIFORM SIGN A"), 1, ran.stderr)

    def test_panels_and_labels_do_not_overlap(self):
        code = """
from matplotlib import pyplot
from cellblock_kernel.outputs import plot
def overlaps(figure):
    plot._png(figure)
    boxes = [label.get_window_extent() for axes in figure.axes for label in axes.xaxis.get_majorticklabels()]
    boxes = [axes.get_tightbbox() for axes in figure.axes] if len(figure.axes) > 1 else boxes
    return sum(one.overlaps(other) for number, one in enumerate(boxes) for other in boxes[number + 1 :])
figure, axes = plt.subplots(2, 2)
for one in axes.flat:
    one.set(title="A title", xlabel="x", ylabel="y")
panels = overlaps(figure)
figure = plt.figure()
plt.bar([f"A rather long name, number {n}" for n in range(6)], range(6))
plot._png(figure)
slants = {label.get_rotation() for label in figure.axes[0].get_xticklabels()}
plt.close("all")
print(panels, slants)
"""
        self.assertEqual(self.completes(PLT + code).stdout, "0 {30.0}\n")

    def test_the_arrangement_of_code_is_kept(self):
        kept = "figure, axes = plt.subplots(1, 2)\n{}\nfrom cellblock_kernel.outputs import plot\nplot._png(figure)\n"
        kept += "print(type(figure.get_layout_engine()).__name__); plt.close('all')"
        for arranged, engine in (
            ("figure.subplots_adjust(left=0.3)", "NoneType"),
            ("figure.set_layout_engine('compressed')", "ConstrainedLayoutEngine"),
            ("pass", "ConstrainedLayoutEngine"),
            ("figure.colorbar(axes[0].imshow([[1, 2]]))", "TightLayoutEngine"),
        ):
            with self.subTest(arranged):
                ran = self.completes(PLT + kept.format(arranged))
                self.assertEqual((ran.stdout, ran.stderr), (engine + "\n", ""))

    def test_settings_are_those_of_the_cell_where_it_has_some(self):
        first = "matplotlib.colors.to_hex(plt.rcParams['axes.prop_cycle'].by_key()['color'][0])"
        read = f"import matplotlib; print({first}, plt.rcParams['date.converter'])"
        self.assertEqual(self.completes(PLT + read).stdout, "#3f90da concise\n")
        self.assertEqual(self.completes("plt.style.use('default'); " + read).stdout, "#1f77b4 auto\n")

    def test_long_series_are_thinned(self):
        (shown,) = self.figures("plt.plot(range(100_000));")
        self.assertEqual((len(shown["series"][0]["x"]), shown["series"][0]["points"]), (1000, 100_000))
        self.assertEqual((shown["series"][0]["y"][0], shown["series"][0]["y"][-1]), (0, 99_999))

    def test_a_figure_of_odd_size_stays_bounded(self):
        (shown,) = self.figures("plt.figure(figsize=(500, 1)); plt.plot([1]);")
        self.assertLessEqual(shown["width"], 6100)
        (shown,) = self.figures("plt.plot([1]); plt.text(3, 0, 'far away');")
        self.assertLessEqual(shown["width"], 6000)

    @needs("pandas")
    def test_the_bars_of_pandas_have_names(self):
        (shown,) = self.figures("import pandas as pd\npd.Series([1, 2], index=['a', 'b']).plot.bar()")
        self.assertEqual(shown["series"][0]["x"], ["a", "b"])

    def test_a_reset_closes_figures(self):
        self.completes("import matplotlib.pyplot as plt")
        self.kernel.ask("reset")
        self.assertEqual(self.figures(""), [])


@needs("altair", "vl_convert")
class Altair(KernelTest):
    CHART = "import altair as alt\nchart = alt.Chart(alt.Data(values=[{'x': 1, 'y': 2}]), title='T').mark_bar().encode(x='x:Q', y='y:Q')\n"

    def test_a_chart_is_specification_and_picture(self):
        ran = self.completes(self.CHART + "chart")
        (output,) = ran.outputs
        self.assertEqual((output["type"], output["library"], output["name"], output["title"]), ("figure", "altair", "chart", "T"))
        self.assertEqual(output["spec"]["mark"], {"type": "bar"})
        self.assertEqual(size_of(ran.blobs[0][0]), (output["width"], output["height"]))

    def test_a_crashed_renderer_loses_the_picture_but_not_the_kernel(self):
        dying = "import vl_convert, os\nvl_convert.vegalite_to_png = lambda *given, **options: os.abort()\n"
        ran = self.completes(self.CHART + dying + "chart")
        (output,) = ran.outputs
        self.assertIn("no picture: the renderer ended without a picture (SIGABRT)", output["note"])
        self.assertEqual(ran.blobs, [[]])

    def test_drawing_leaves_no_thread_and_no_process(self):
        left = "import os\n(len(os.listdir('/proc/self/task')), open(f'/proc/self/task/{os.getpid()}/children').read())"
        self.completes(self.CHART + "chart")
        ran = self.completes(left)
        self.assertEqual(ran.outputs[0]["value"], "(1, '')")

    def test_a_dict_with_the_schema_is_a_chart(self):
        ran = self.completes(self.CHART + "display(chart.to_dict())")
        self.assertEqual((ran.outputs[0]["library"], len(ran.blobs[0])), ("vega-lite", 1))

    def test_an_invalid_chart_is_explained(self):
        error = self.raises(self.CHART + "chart.mark = 'nope'\nchart")
        self.assertTrue(error["message"].startswith("invalid Altair/Vega-Lite specification: "), error["message"])

    def test_an_invalid_specification_is_explained(self):
        error = self.raises(
            "{'$schema': 'https://vega.github.io/schema/vega-lite/v5.json', 'data': {'values': []}, 'mark': 'nope'}"
        )
        self.assertTrue(error["message"].startswith("invalid Altair/Vega-Lite specification: "), error["message"])

    @needs("pandas")
    def test_the_error_for_too_many_rows_says_what_to_do(self):
        error = self.raises(
            "import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'x': range(9000)})).mark_point().encode(x='x')"
        )
        self.assertIn("alt.data_transformers.disable_max_rows()", error["message"])

    def test_data_at_a_url_is_kept_without_a_picture(self):
        ran = self.completes("import altair as alt\nalt.Chart('https://example.test/a.csv').mark_bar().encode(x='a:Q')")
        self.assertEqual((ran.outputs[0]["library"], ran.blobs), ("altair", [[]]))
        self.assertIn("at a URL, which the sandbox can not load", ran.stderr)


class Rich(KernelTest):
    def test_representations_become_a_bundle(self):
        ran = self.completes("class H:\n  def _repr_html_(self): return '<b>1</b>'\n  def __repr__(self): return 'H!'\nH()")
        self.assertEqual(ran.outputs, [{"type": "rich", "name": None, "mimes": ["text/html"], "text": "H!"}])
        self.assertEqual(ran.blobs, [[b"<b>1</b>"]])

    def test_a_bundle_with_base64_becomes_bytes(self):
        ran = self.completes(
            "class P:\n  def _repr_mimebundle_(self, include=None, exclude=None): return {'image/png': 'AAEC', 'text/plain': 'p'}\nP()"
        )
        self.assertEqual((ran.outputs[0]["mimes"], ran.outputs[0]["text"], ran.blobs), (["image/png"], "p", [[b"\0\1\2"]]))

    def test_broken_representations_fall_back_to_text(self):
        ran = self.completes("class B:\n  def _repr_html_(self): 1 / 0\n  def __repr__(self): return 'B'\ndisplay(B(), B)")
        self.assertEqual(ran.values, ["B", "<class '__main__.B'>"])

    def test_an_exception_as_a_value_is_an_exception_output(self):
        ran = self.completes("display(ValueError('v'))")
        self.assertEqual((ran.outputs[0]["exception"], ran.outputs[0]["message"]), ("ValueError", "v"))

    def test_numbers_that_json_lacks_are_text(self):
        ran = self.completes("display(float('inf'), 2**60, -2**53, 10**5000 > 1, True)")
        self.assertEqual(ran.values, ["inf", str(2**60), -(2**53), True, True])

    def test_containers_are_laid_out(self):
        ran = self.completes("display([1], {'key': 'x' * 60, 'other': 'y' * 60}, list(range(100_000)))")
        self.assertEqual(ran.values[0], "[1]")
        self.assertEqual(ran.values[1].count("\n"), 1)
        self.assertIn("… and 99000 more items (list of 100000)", ran.values[2])

    @needs("PIL")
    def test_a_pillow_image_is_png(self):
        ran = self.completes("from PIL import Image\nImage.new('CMYK', (3, 2))")
        self.assertEqual({**ran.outputs[0]}, {"type": "image", "name": None, "mime": "image/png", "width": 3, "height": 2})
        self.assertEqual(size_of(ran.blobs[0][0]), (3, 2))

"""Pictures of Plotly's figures, as matplotlib draws them from their data."""

import itertools
import unittest
import warnings

from tests.driver import KernelTest, needs

SETUP = "import pandas as pd, plotly.express as px, plotly.graph_objects as go\n"


@needs("plotly", "matplotlib", "pandas")
class Shown(KernelTest):
    def shown(self, code):
        ran = self.completes(SETUP + code)
        self.assertEqual((len(ran.outputs), ran.stderr), (1, ""), ran.outputs)
        return ran.outputs[0]["text"].splitlines(), dict(zip(ran.outputs[0]["mimes"], ran.blobs[0]))

    def test_a_line_has_a_picture_that_says_whose_it_is(self):
        for code in ("px.line(x=[1, 2], y=[3, 4])", "px.line(x=[1, 2], y=[3, 4]).show()"):
            text, forms = self.shown(code)
            self.assertEqual(text[0], "Plotly figure (approximate picture, drawn from its data by matplotlib)")
            self.assertEqual(list(forms), ["application/vnd.plotly.v1+json", "text/html", "image/png"])
            self.assertEqual(forms["image/png"][:4], b"\x89PNG")

    def test_a_kind_that_only_browsers_draw_is_named(self):
        for code, kind in (
            ("go.Figure([go.Scatter3d(x=[1], y=[1], z=[1]), go.Scatter(y=[1])])", "scatter3d"),
            ("px.violin(y=[1, 2, 3])", "violin"),
            ("px.histogram(x=[1, 2], y=[1, 2], histfunc='avg')", "histogram (of another function than count or sum)"),
        ):
            text, forms = self.shown(code)
            self.assertEqual(text[0], f"Plotly figure (no picture: only browsers draw {kind} traces)")
            self.assertEqual(list(forms), ["application/vnd.plotly.v1+json", "text/html"])

    def test_settings_of_the_cell_stay_and_do_not_change_the_picture(self):
        first = self.shown("px.bar(x=['a', 'b'], y=[1, -2])")[1]["image/png"]
        code = "import matplotlib.pyplot as plt; plt.style.use('dark_background'); plt.rcParams['font.size'] = 3\n"
        self.assertEqual(self.shown(code + "px.bar(x=['a', 'b'], y=[1, -2])")[1]["image/png"], first)
        self.assertEqual(self.completes("plt.rcParams['font.size'], plt.get_fignums()").values, ["(3.0, [])"])


@needs("plotly", "matplotlib", "pandas")
class Drawn(unittest.TestCase):
    """What is drawn, read back from matplotlib's artists."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import pandas
        import plotly.express
        import plotly.graph_objects

        from cellblock_kernel.outputs import drawn

        drawn.install()
        cls.px, cls.go, cls.pd = plotly.express, plotly.graph_objects, pandas

    def figure(self, figure):
        from cellblock_kernel.outputs.plotly import figure as described
        from cellblock_kernel.outputs.plotly import page

        return page.figure_of(described.specification(figure))

    def series(self, figure):
        from cellblock_kernel.outputs import series

        return [(one["kind"], one["x"], one["y"]) for one in series.series_of(self.figure(figure))]

    def test_lines_have_their_gaps_dates_and_names(self):
        dates = self.pd.date_range("2024-01-30", periods=3)
        (line,) = self.series(self.px.line(x=dates, y=[1, None, 3]))
        self.assertEqual(line, ("line", ["2024-01-30", "2024-01-31", "2024-02-01"], [1.0, None, 3.0]))
        drawn = self.figure(self.go.Figure([self.go.Scatter(y=[1, 2], name="costs $5 to $6"), self.go.Scatter(y=[2, 1], name="b")]))
        (legend,) = drawn.legends
        self.assertEqual([text.get_text() for text in legend.get_texts()], [r"costs \$5 to \$6", "b"])

    def test_bars_are_beside_or_on_each_other_as_the_layout_says(self):
        frame = self.pd.DataFrame({"x": ["p", "q"] * 2, "y": [1, 2, 3, 4], "c": ["a", "a", "b", "b"]})
        for mode, starts, bottoms in (("group", [-0.4, 0.6, 0.0, 1.0], [0] * 4), ("relative", [-0.4, 0.6] * 2, [0, 0, 1, 2])):
            axes = self.figure(self.px.bar(frame, x="x", y="y", color="c", barmode=mode)).axes[0]
            self.assertEqual([round(bar.get_x(), 6) for bar in axes.patches], starts)
            self.assertEqual([bar.get_y() for bar in axes.patches], bottoms)
        axes = self.figure(self.px.bar(frame[:2], x="y", y="x", orientation="h")).axes[0]
        self.assertEqual([bar.get_width() for bar in axes.patches], [1, 2])
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ["p", "q"])

    def test_histograms_have_round_bins_and_count_or_add(self):
        ((_, middles, counts),) = self.series(self.px.histogram(x=[1, 1, 2, 9, 12], nbins=4))
        self.assertEqual((middles, counts), ([2.5, 7.5, 12.5], [3, 1, 1]))
        ((_, names, sums),) = self.series(self.px.histogram(x=["a", "b", "a"], y=[1, 2, 3]))
        self.assertEqual((names, sums), (["a", "b"], [4, 2]))

    def test_boxes_pies_and_heatmaps_have_their_values(self):
        (box,) = self.series(self.px.box(x=["a"] * 3 + ["b"] * 3, y=[1, 2, 3, 4, 5, 9]))
        self.assertEqual((box[0], box[2]), ("box", [2.0, 5.0]))
        (pie,) = self.series(self.px.pie(names=["a", "b", "a"], values=[1, 5, 2]))
        self.assertEqual(pie, ("pie", ["b", "a"], [5.0, 3.0]))
        drawn = self.figure(self.px.imshow([[1, 2], [3, 4]], text_auto=True))
        self.assertEqual(sorted(text.get_text() for text in drawn.axes[0].texts), ["1", "2", "3", "4"])
        self.assertTrue(drawn.axes[0].yaxis.get_inverted())

    def test_panels_share_the_range_and_the_names_that_they_match(self):
        frame = self.pd.DataFrame({"x": ["p", "q", "q"], "y": [1, 2, 30], "c": ["a", "a", "b"]})
        one, other = self.figure(self.px.bar(frame, x="x", y="y", facet_col="c")).axes[:2]
        self.assertEqual(one.get_ylim(), other.get_ylim())
        self.assertEqual([label.get_text() for label in other.get_xticklabels()], ["p", "q"])
        self.assertLess(one.get_position().x1, other.get_position().x0)

    def test_a_second_axis_is_over_the_first_with_lines_above_bars(self):
        from plotly.subplots import make_subplots

        figure = make_subplots(specs=[[{"secondary_y": True}]])
        figure.add_trace(self.go.Scatter(x=[1, 2], y=[3, 4]), secondary_y=False)
        figure.add_trace(self.go.Bar(x=[1, 2], y=[30, 40]), secondary_y=True)
        figure.add_hline(y=3.5)
        one, other = self.figure(figure).axes
        self.assertEqual(one.get_position().bounds, other.get_position().bounds)
        self.assertGreater(one.get_zorder(), other.get_zorder())
        self.assertIn([3.5, 3.5], [list(line.get_ydata()) for line in one.lines])

    def test_specifications_of_any_form_are_drawn_or_refused(self):
        from cellblock_kernel.outputs.plotly.page import NotDrawn, figure_of

        odd = itertools.cycle([None, [], "x", -1, {"a": 1}, [None], ["2024-01-01", "b"], [[1], [2]]])
        keys = ("x", "y", "z", "labels", "values", "marker", "line", "open", "text", "domain", "xaxis", "name", "error_y")
        kinds = ("scatter", "bar", "histogram", "box", "pie", "heatmap", "candlestick")
        for kind, key in itertools.product(kinds, keys):
            trace = {"type": kind, "x": [1, 2], "y": [3, 4], "z": [[1, 2], [3, 4]], key: next(odd)}
            with self.subTest(kind=kind, key=key, value=trace[key]), warnings.catch_warnings(action="ignore"):
                try:
                    figure_of({"data": [trace], "layout": {}})
                except NotDrawn as error:
                    self.assertTrue(str(error))

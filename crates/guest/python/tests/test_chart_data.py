"""The data of matplotlib's charts, as matplotlib, pandas and seaborn draw them."""

import json

from tests.driver import KernelTest, needs

PLT = "import matplotlib.pyplot as plt\n"
PANDAS = PLT + "import pandas as pd\n"
FRAME = "d = pd.DataFrame({'g': ['a', 'a', 'b', 'b'], 'h': ['x', 'y', 'x', 'y'], 'v': [1, 2, 3, 4]})\n"
SEABORN = PANDAS + "import seaborn as sns\n" + FRAME


class Charts(KernelTest):
    def series(self, code):
        """The series of the one figure that the code draws, without the numbers of panels and points."""
        (shown,) = self.completes(code + "\nNone").outputs
        for one in shown["series"]:
            del one["axes"], one["points"]
        return shown["series"]

    def only(self, code):
        (one,) = self.series(code)
        return one


@needs("matplotlib")
class Matplotlib(Charts):
    def test_a_histogram_has_its_label_and_the_edges_of_its_bins(self):
        edges = {"from": [0.0, 1.0], "to": [1.0, 2.0]}
        for kind in ("bar", "step", "stepfilled"):
            with self.subTest(kind):
                one = self.only(PLT + f"plt.hist([0, 1, 1.5], bins=[0, 1, 2], label='ages', histtype='{kind}')")
                self.assertEqual(one, {"label": "ages", "kind": "hist", "x": [0.5, 1.5], "y": [1.0, 2.0], "columns": edges})

    def test_error_bars_belong_to_their_line_or_bars(self):
        ends = {"low": [2.5, 3.0], "high": [3.5, 5.0]}
        line = self.only(PLT + "plt.errorbar([1, 2], [3, 4], yerr=[0.5, 1], label='e', capsize=3)")
        self.assertEqual(line, {"label": "e", "kind": "line", "x": [1, 2], "y": [3, 4], "columns": ends})
        bars = self.only(PLT + "plt.bar(['p', 'q'], [3, 4], yerr=[0.5, 1], label='b', capsize=3)")
        self.assertEqual(bars, {"label": "b", "kind": "bar", "x": ["p", "q"], "y": [3, 4], "columns": ends})
        both = self.only(PLT + "plt.errorbar([1], [3], xerr=0.5, yerr=1, fmt='o')")
        self.assertEqual((both["kind"], both["columns"]), ("scatter", {"x_low": [0.5], "x_high": [1.5], "low": [2], "high": [4]}))

    def test_stems_are_one_series(self):
        one = self.only(PLT + "plt.stem([1, 2], [3, 4], label='s')")
        self.assertEqual(one, {"label": "s", "kind": "scatter", "x": [1, 2], "y": [3, 4]})

    def test_box_plots_are_one_series_with_their_quartiles(self):
        columns = {
            "low": [1, 2],
            "first_quartile": [1.75, 2.5],
            "third_quartile": [4.5, 3.5],
            "high": [4.5, 4],
            "outliers": [1, 0],
        }
        data = "[[1, 2, 3, 9], [2, 3, 4]]"
        one = self.only(PLT + f"plt.boxplot({data}, tick_labels=['a', 'b'])")
        self.assertEqual(one, {"label": "", "kind": "box", "x": ["a", "b"], "y": [2.5, 3.0], "columns": columns})
        one = self.only(PLT + f"plt.boxplot({data}, tick_labels=['a', 'b'], orientation='horizontal', patch_artist=True)")
        self.assertEqual((one["x"], one["y"], one["columns"]), ([2.5, 3.0], ["a", "b"], columns))

    def test_a_pie_has_labels_and_sizes(self):
        one = self.only(PLT + "plt.pie([1, 3], labels=['a', 'b'], autopct='%d%%')")
        self.assertEqual(one, {"label": "", "kind": "pie", "x": ["a", "b"], "y": [1, 3]})

    def test_a_grid_has_its_cells_row_by_row(self):
        cells = {"z": [1, 2, 3, 4]}
        one = self.only(PLT + "plt.imshow([[1, 2], [3, 4]]); plt.xticks([0, 1], ['l', 'r']); plt.colorbar()")
        self.assertEqual(
            (one["kind"], one["x"], one["y"], one["columns"]), ("heatmap", ["l", "r"] * 2, [0.0, 0.0, 1.0, 1.0], cells)
        )
        one = self.only(PLT + "plt.pcolormesh([[1, 2], [3, 4]])")
        self.assertEqual(
            (one["kind"], one["x"], one["y"], one["columns"]), ("heatmap", [0.5, 1.5] * 2, [0.5, 0.5, 1.5, 1.5], cells)
        )
        one = self.only(PLT + "plt.hist2d([0, 1, 1], [0, 1, 1], bins=2)")
        self.assertEqual((one["kind"], one["columns"]), ("heatmap", {"z": [1.0, 0.0, 0.0, 2.0]}))

    def test_a_large_grid_is_thinned_and_says_how_large_it_is(self):
        (shown,) = self.completes(PLT + "import numpy as np\nplt.imshow(np.zeros((500, 400)))\nNone").outputs
        (one,) = shown["series"]
        self.assertEqual((one["points"], len(one["x"]), len(one["columns"]["z"])), (200_000, 980, 980))

    def test_drawings_without_data_are_named(self):
        one = self.only(PLT + "plt.contour([[1, 2], [3, 4]])")
        self.assertEqual(one, {"label": "", "kind": "other", "x": [], "y": []})

    def test_an_area_between_two_edges_has_both(self):
        one = self.only(PLT + "plt.fill_between([1, 2], [1, 2], [3, 5], label='band')")
        self.assertEqual(one, {"label": "band", "kind": "area", "x": [1.0, 2.0], "y": [3.0, 5.0], "columns": {"low": [1.0, 2.0]}})

    def test_grouped_bars_have_the_names_of_their_group(self):
        shown = self.series(
            PLT + "plt.bar([-0.2, 0.8], [1, 2], 0.4, label='m'); plt.bar([0.2, 1.2], [3, 4], 0.4, label='n')\n"
            "plt.xticks([0, 1], ['a', 'b'])"
        )
        self.assertEqual(
            [(one["label"], one["x"], one["y"]) for one in shown], [("m", ["a", "b"], [1, 2]), ("n", ["a", "b"], [3, 4])]
        )

    def test_dates_have_one_spelling(self):
        setup = PLT + "import datetime as dt, numpy as np\n"
        days, hours = ["2024-01-01", "2024-01-02"], ["2024-01-01T00:00:00", "2024-01-01T12:30:00"]
        for code, expected in (
            ("plt.plot([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], [1, 2])", days),
            ("plt.bar([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], [1, 2])", days),
            ("plt.plot([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], [1, 2])", days),
            ("plt.scatter(np.array(['2024-01-01', '2024-01-02'], 'M8[ns]'), [1, 2])", days),
            ("plt.plot(np.array(['2024-01-01', '2024-01-02'], 'M8[ns]'), [1, 2])", days),
            ("plt.plot([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 30)], [1, 2])", hours),
            ("plt.plot(np.array(['2024-01-01', '2024-01-01T12:30'], 'M8[ns]'), [1, 2])", hours),
            ("plt.fill_between([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 30)], [1, 2])", hours),
        ):
            with self.subTest(code):
                self.assertEqual(self.only(setup + code)["x"], expected)


@needs("matplotlib", "pandas")
class Pandas(Charts):
    def test_charts_over_time_have_the_labels_that_the_picture_shows(self):
        for index, expected in (
            ("pd.period_range('2024-01', periods=3, freq='M')", ["2024-01", "2024-02", "2024-03"]),
            ("pd.date_range('2024-01-01', periods=3, freq='MS')", ["2024-01", "2024-02", "2024-03"]),
            ("pd.period_range('2024Q1', periods=3, freq='Q')", ["2024Q1", "2024Q2", "2024Q3"]),
            ("pd.period_range('2022', periods=3, freq='Y')", ["2022", "2023", "2024"]),
            ("pd.period_range('2024-01-01', periods=3, freq='D')", ["2024-01-01", "2024-01-02", "2024-01-03"]),
            ("pd.date_range('2024-01-01', periods=3)", ["2024-01-01", "2024-01-02", "2024-01-03"]),
            ("pd.date_range('2024-01-01', periods=3, tz='Europe/Berlin')", ["2024-01-01", "2024-01-02", "2024-01-03"]),
            ("pd.date_range('2024-01-07', periods=3, freq='W')", ["2024-01-07", "2024-01-14", "2024-01-21"]),
            ("pd.to_datetime(['2024-01-01', '2024-01-05', '2024-02-01'])", ["2024-01-01", "2024-01-05", "2024-02-01"]),
            (
                "pd.date_range('2024-01-01', periods=3, freq='h')",
                ["2024-01-01T00:00:00", "2024-01-01T01:00:00", "2024-01-01T02:00:00"],
            ),
        ):
            setup = PANDAS + f"s = pd.Series([1, 2, 3], index={index})\n"
            for kind in ("line", "bar"):
                with self.subTest(index=index, kind=kind):
                    self.assertEqual(self.only(setup + f"s.plot.{kind}()")["x"], expected)
            with self.subTest(index=index, kind="grouped"):
                shown = self.series(setup + "pd.DataFrame({'m': s, 'n': 2 * s}).plot.bar()")
                self.assertEqual([(one["label"], one["x"]) for one in shown], [("m", expected), ("n", expected)])

    def test_lines_and_bars_with_errors_are_one_series(self):
        setup = PANDAS + "s = pd.Series([3, 4], index=['p', 'q'], name='v')\n"
        ends = {"low": [2.5, 3.0], "high": [3.5, 5.0]}
        bars = self.only(setup + "s.plot.bar(yerr=[0.5, 1])")
        self.assertEqual(bars, {"label": "v", "kind": "bar", "x": ["p", "q"], "y": [3, 4], "columns": ends})
        line = self.only(setup + "s.reset_index(drop=True).to_frame().plot(yerr=[0.5, 1])")
        self.assertEqual((line["label"], line["kind"], line["columns"]), ("v", "line", ends))

    def test_boxes_pies_and_histograms_are_read(self):
        box = self.only(PANDAS + FRAME + "d.boxplot(column='v', by='g')")
        self.assertEqual((box["kind"], box["x"], box["y"]), ("box", ["a", "b"], [1.5, 3.5]))
        pie = self.only(PANDAS + FRAME + "d.groupby('g').v.sum().plot.pie()")
        self.assertEqual((pie["kind"], pie["x"], pie["y"]), ("pie", ["a", "b"], [3, 7]))
        hist = self.only(PANDAS + FRAME + "d[['v']].plot.hist(bins=[0, 2, 4])")
        self.assertEqual((hist["label"], hist["kind"], hist["y"]), ("v", "hist", [1.0, 3.0]))

    def test_areas_and_their_edges_have_the_names_of_the_columns(self):
        shown = self.series(PANDAS + "pd.DataFrame({'m': [1, 2], 'n': [3, 4]}).plot.area()")
        self.assertEqual(
            [(one["label"], one["kind"]) for one in shown], [("m", "line"), ("n", "line"), ("m", "area"), ("n", "area")]
        )
        self.assertEqual((shown[3]["y"], shown[3]["columns"]), ([4.0, 6.0], {"low": [1.0, 2.0]}))


@needs("matplotlib", "pandas", "seaborn")
class Seaborn(Charts):
    def test_bars_have_their_names_groups_and_errors(self):
        shown = self.series(SEABORN + "sns.barplot(pd.concat([d, d]), x='g', y='v', hue='h', errorbar=('pi', 100))")
        self.assertEqual(
            [(one["label"], one["x"], one["y"]) for one in shown], [("x", ["a", "b"], [1.0, 3.0]), ("y", ["a", "b"], [2.0, 4.0])]
        )
        self.assertEqual(shown[0]["columns"], {"low": [1.0, 3.0], "high": [1.0, 3.0]})

    def test_lines_points_and_boxes_have_the_names_in_the_legend(self):
        shown = self.series(SEABORN + "sns.lineplot(d, x='v', y='v', hue='h')")
        self.assertEqual([(one["label"], one["kind"], one["x"]) for one in shown], [("x", "line", [1, 3]), ("y", "line", [2, 4])])
        shown = self.series(SEABORN + "sns.scatterplot(d, x='v', y='v', hue='h')")
        self.assertEqual(
            [(one["label"], one["kind"], one["x"]) for one in shown], [("x", "scatter", [1.0, 3.0]), ("y", "scatter", [2.0, 4.0])]
        )
        shown = self.series(SEABORN + "sns.boxplot(d, x='g', y='v', hue='h')")
        self.assertEqual(
            [(one["label"], one["kind"], one["x"], one["y"]) for one in shown],
            [("x", "box", ["a", "b"], [1, 3]), ("y", "box", ["a", "b"], [2, 4])],
        )

    def test_a_heatmap_has_its_names(self):
        one = self.only(SEABORN + "sns.heatmap(d.pivot_table(index='g', columns='h', values='v'))")
        self.assertEqual(
            (one["kind"], one["x"], one["y"], one["columns"]),
            ("heatmap", ["x", "y"] * 2, ["a", "a", "b", "b"], {"z": [1.0, 2.0, 3.0, 4.0]}),
        )


@needs("matplotlib", "pandas")
class E2b(KernelTest):
    def chart(self, code):
        """The chart of the current figure as E2B's clients get it."""
        ran = self.completes(
            code
            + "\nimport json\nfrom cellblock_kernel.e2b import charts\nprint(json.dumps(charts.of_figure(plt.gcf())))\nplt.close('all')"
        )
        return json.loads(ran.stdout)

    def test_a_line_of_pandas_is_over_dates(self):
        setup = PANDAS + "s = pd.Series([1, 2], index=pd.date_range('2024-01-01', periods=2), name='v')\n"
        chart = self.chart(setup + "s.plot()")
        self.assertEqual((chart["type"], chart["x_scale"]), ("line", "datetime"))
        self.assertEqual(chart["elements"], [{"label": "v", "points": [["2024-01-01T00:00:00", 1], ["2024-01-02T00:00:00", 2]]}])
        self.assertTrue(all(tick.startswith(("2023-", "2024-")) for tick in chart["x_ticks"]), chart["x_ticks"])

    def test_bars_of_pandas_have_the_labels_of_the_picture(self):
        chart = self.chart(PANDAS + "pd.Series([1, 2], index=pd.period_range('2024-01', periods=2, freq='M'), name='v').plot.bar()")
        self.assertEqual(
            chart["elements"], [{"label": "2024-01", "group": "v", "value": 1.0}, {"label": "2024-02", "group": "v", "value": 2.0}]
        )

    def test_bars_with_errors_are_bars(self):
        chart = self.chart(PLT + "plt.bar(['a'], [2], yerr=[1], capsize=2, label='b')")
        self.assertEqual((chart["type"], chart["elements"]), ("bar", [{"label": "a", "group": "b", "value": 2.0}]))

    def test_a_line_over_an_area_is_a_line(self):
        chart = self.chart(PLT + "plt.plot([1, 2], [3, 4], label='l'); plt.fill_between([1, 2], [2, 3], [4, 5])")
        self.assertEqual((chart["type"], chart["elements"]), ("line", [{"label": "l", "points": [[1, 3], [2, 4]]}]))

    def test_a_box_plot_of_lines_is_a_box_plot(self):
        chart = self.chart(PLT + "plt.boxplot([[1, 2, 3, 9]], tick_labels=['a'])")
        expected = {
            "label": "a",
            "min": 1.0,
            "first_quartile": 1.75,
            "median": 2.5,
            "third_quartile": 4.5,
            "max": 4.5,
            "outliers": [9.0],
        }
        self.assertEqual((chart["type"], chart["elements"]), ("box_and_whisker", [expected]))

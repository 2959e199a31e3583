"""What cells emit and derive from: references, results, figures with words, charts, findings, coverage."""

import json

from tests.driver import KernelTest, needs

ROWS = [{"t": "2024-01-01", "price": 1.5}, {"t": "2024-01-02", "price": None}]


class Derivation(KernelTest):
    configuration = {"prelude": ["analysis", "derivation"], "limits": {"result_bytes": 1000}}

    def emitted(self, code, kind):
        """The only output of a cell, which has to be of a kind, with its JSON."""
        ran = self.completes(code)
        self.assertEqual([output["type"] for output in ran.outputs], [kind])
        return ran.outputs[0], ran.blobs[0][0]


class References(Derivation):
    def setUp(self):
        super().setUp()
        self.values = {"get_rows_1": ROWS, "get_name_1": {"name": "é", "big": 2**70}, "get_list_1": [1, 2]}
        document, self.references = b"{", []
        for alias, value in self.values.items():
            document += (b"" if document == b"{" else b",") + json.dumps(alias).encode() + b":"
            text = json.dumps(value, ensure_ascii=False).encode()
            self.refer(alias, alias, len(document), len(text))
            document += text
        self.path.write_bytes(document + b"}")

    @property
    def path(self):
        return self.directory / "inputs.json"

    def refer(self, name, alias, offset, length):
        place = {"path": str(self.path), "offset": offset, "length": length}
        self.references.append({"name": name, "alias": alias, "format": "value", **place})

    def test_each_result_is_a_global_and_an_entry_of_inputs(self):
        code = "display(get_rows_1 is inputs['get_rows_1'], get_name_1['big'] == 2**70, list(inputs), len(inputs), 'x' in inputs)"
        ran = self.run_cell(code, references=self.references)
        self.assertEqual(ran.values[:2], [True, True])
        self.assertEqual(ran.values[2:], ["['get_rows_1', 'get_name_1', 'get_list_1']", 3, False])
        got = self.run_cell(
            "import json\nset_result({name: inputs[name] for name in inputs if name != 'get_name_1'})", references=self.references
        )
        self.assertEqual(json.loads(got.blobs[0][0]), {"get_rows_1": ROWS, "get_list_1": [1, 2]})

    def test_two_names_of_one_alias_are_one_object(self):
        first = self.references[0]
        self.refer("prices", "get_rows_1", first["offset"], first["length"])
        self.assertEqual(self.run_cell("prices is get_rows_1", references=self.references).values, [True])

    def test_earlier_cells_do_not_change_a_recorded_result(self):
        self.run_cell("get_list_1.append(3); get_rows_1 = None", references=self.references)
        self.assertEqual(
            self.run_cell("(get_list_1, get_rows_1[0]['price'])", references=self.references).values, ["([1, 2], 1.5)"]
        )

    def test_results_that_the_code_does_not_name_are_not_read(self):
        self.assertEqual(
            self.run_cell("inputs", references=self.references).values, ["<inputs {get_rows_1, get_name_1, get_list_1}>"]
        )
        self.assertEqual(self.run_cell("'get_list_1' in globals()", references=self.references).values, [True])
        self.path.write_bytes(b"")
        self.assertEqual(self.run_cell("1 + 1", references=self.references).values, [2])
        ran = self.run_cell("get_list_1", references=self.references)
        self.assertEqual(ran.done["outcome"], "raised")

    def test_the_error_for_an_unknown_name_lists_the_known_ones(self):
        ran = self.run_cell("inputs['nope']", references=self.references)
        self.assertIn("no input 'nope'; bound inputs: get_rows_1, get_name_1, get_list_1", ran.exception["message"])

    def test_code_can_name_a_result_in_a_string(self):
        self.assertEqual(self.run_cell("eval('get_list_' + '1')", references=self.references).values, ["[1, 2]"])


class Results(Derivation):
    def test_plain_values_stay_as_they_are(self):
        header, blob = self.emitted("set_result({'a': [1, 2.5, None, True, 'é'], 3: (1,), 'n': 2**60})", "result")
        self.assertEqual(
            (header["python_type"], json.loads(blob)), ("dict", {"a": [1, 2.5, None, True, "é"], "3": [1], "n": 2**60})
        )

    def test_dates_decimals_sets_and_dataclasses_become_json(self):
        code = (
            "import decimal, dataclasses, enum\n@dataclasses.dataclass\nclass P:\n    x: int\n"
            "class E(enum.Enum):\n    A = 'a'\n"
            "set_result([datetime(2024, 1, 2, tzinfo=timezone.utc), timedelta(hours=1), decimal.Decimal('1.5'), {2, 1}, P(3), E.A])"
        )
        _, blob = self.emitted(code, "result")
        self.assertEqual(json.loads(blob), ["2024-01-02T00:00:00+00:00", 3600.0, 1.5, [1, 2], {"x": 3}, "a"])

    @needs("pandas")
    def test_values_of_numpy_and_pandas_become_json(self):
        code = (
            "i = pd.date_range('2024', periods=2)\n"
            "set_result({'f': pd.DataFrame({'v': [1, 2]}, index=i), 's': pd.Series([1.5, 2.5], index=['a', 'b']), "
            "'n': np.int64(4), 'a': np.arange(3), 't': i[0]})"
        )
        _, blob = self.emitted(code, "result")
        expected = {
            "f": [{"index": "2024-01-01T00:00:00", "v": 1}, {"index": "2024-01-02T00:00:00", "v": 2}],
            "s": {"a": 1.5, "b": 2.5},
            "n": 4,
            "a": [0, 1, 2],
            "t": "2024-01-01T00:00:00",
        }
        self.assertEqual(json.loads(blob), expected)

    def test_keys_become_text(self):
        _, blob = self.emitted("set_result({0: 'a', 1: 'b', 2: 'c', 0.5: 'd', None: 'e', 'x': {True: 'f', False: 'g'}})", "result")
        self.assertEqual(
            json.loads(blob), {"0": "a", "1": "b", "2": "c", "0.5": "d", "null": "e", "x": {"true": "f", "false": "g"}}
        )

    @needs("pandas")
    def test_labels_of_series_and_frames_are_kept(self):
        for code, expected in (
            ("pd.DataFrame({'k': [0, 1, 1, 2]}).groupby('k').size()", {"0": 1, "1": 2, "2": 1}),
            ("pd.Series([1, 2], index=range(2020, 2022))", {"2020": 1, "2021": 2}),
            ("pd.DataFrame({'v': [1, 2]}, index=range(2020, 2022))", [{"index": 2020, "v": 1}, {"index": 2021, "v": 2}]),
            ("pd.DataFrame([[1, 2]], columns=[1, 0])", [{"1": 1, "0": 2}]),
            ("pd.Series([1, 2], index=pd.MultiIndex.from_tuples([(0, 'a'), (1, 'b')]))", {"0 / a": 1, "1 / b": 2}),
        ):
            with self.subTest(code):
                _, blob = self.emitted(f"set_result({code})", "result")
                self.assertEqual(json.loads(blob), expected)

    def test_a_value_that_json_would_change_is_rejected_with_its_path(self):
        for code, told in (
            ("{1: 'a', '1': 'b'}", "result has the keys 1 and '1', both of them '1' as text"),
            ("{'n': [2**64]}", "result['n'][0] is an integer of more than 64 bits"),
            ("{'n': __import__('decimal').Decimal(1) / 3}", "result['n'] is Decimal('0.3333333333333333333333333333')"),
            ("['\\ud800']", "result[0] has a lone surrogate"),
        ):
            with self.subTest(code):
                self.assertIn(told, self.raises(f"set_result({code})")["message"])

    def test_missing_and_non_finite_numbers_become_null_and_are_reported(self):
        ran = self.completes("set_result([1.0, float('nan'), float('inf')])")
        self.assertEqual(json.loads(ran.blobs[0][0]), [1.0, None, None])
        found = ran.done["findings"]
        self.assertEqual(
            [(it["code"], it["details"]) for it in found], [("missing_values_to_null", {"count": 2, "first": "result[1]"})]
        )
        self.assertNotIn("findings", self.completes("1").done)

    def test_a_value_without_a_json_form_is_named_by_its_path(self):
        message = self.raises("set_result({'rows': [1, {'model': object()}]})")["message"]
        self.assertEqual(
            message,
            "result['rows'][1]['model'] is an object, which JSON cannot hold: convert it to numbers, text, lists and dicts",
        )
        self.assertIn("contains itself", self.raises("a = []; a.append(a); set_result(a)")["message"])

    def test_the_error_for_a_large_result_names_its_size_and_the_limit(self):
        message = self.raises("set_result('x' * 2000)")["message"]
        self.assertIn("the result has 2002 bytes as JSON, the limit is 1000: answer with aggregates", message)


@needs("matplotlib")
class Figures(Derivation):
    def test_a_saved_figure_has_a_description_and_is_shown_once(self):
        header, _ = self.emitted("plt.plot([1, 2]); save_figure('a rising line', title='Up')", "figure")
        self.assertEqual((header["alt"], header["title"], header["library"]), ("a rising line", "Up", "matplotlib"))

    def test_an_unsaved_figure_has_no_description(self):
        header, _ = self.emitted("plt.plot([1, 2])", "figure")
        self.assertNotIn("alt", header)

    def test_errors_of_save_figure_say_what_to_do(self):
        for code, told in (
            ("save_figure('x')", "no figure is open"),
            ("plt.plot([1]); save_figure('')", "alt says in words what is shown"),
            ("plt.plot([1]); save_figure(7)", "alt says in words what is shown"),
            ("plt.figure(); save_figure('x')", "the figure is empty"),
            ("save_figure('x', fig=3)", "fig is an int"),
        ):
            with self.subTest(code):
                self.assertIn(told, self.raises(f"{code}\nplt.close('all')")["message"])
                self.completes("plt.close('all')")

    def test_axes_and_charts_of_altair_can_be_saved(self):
        header, _ = self.emitted("fig, ax = plt.subplots(); ax.bar(['a'], [1]); save_figure('bars', fig=ax)", "figure")
        self.assertEqual(header["series"][0]["kind"], "bar")

    def test_lines_over_time_report_their_coverage(self):
        code = (
            "days = pd.date_range('2024', periods=100); gaps = np.full(100, np.nan); gaps[::4] = 1\n"
            "plt.plot(days, np.arange(100), label='whole'); plt.plot(days, gaps, label='gaps'); plt.plot(days[80:], np.arange(20), label='late')\n"
            "plt.plot(days[::7], np.arange(15), label='weekly'); plt.axhline(3, label='level')\n"
            "save_figure('lines')"
        )
        header, _ = self.emitted(code, "figure")
        shares = {one["label"]: one.get("coverage") for one in header["series"]}
        self.assertEqual(shares, {"whole": 1.0, "gaps": 0.25, "late": 0.2, "weekly": 1.0, "level": None})
        self.assertTrue(header["series"][0]["x"][0].startswith("2024-01-01"))

    def test_dates_as_text_are_times(self):
        code = (
            "days = [f'2024-01-{day:02}' for day in range(1, 31)]\n"
            "plt.plot(days, range(30), label='whole'); plt.plot(days[20:], range(10), label='late')\n"
            "plt.plot(days, [day if day % 4 == 0 else None for day in range(30)], label='gaps'); plt.plot(days[::7], range(5), label='weekly')\n"
            "save_figure('lines')"
        )
        header, _ = self.emitted(code, "figure")
        shares = {one["label"]: round(one.get("coverage", -1), 2) for one in header["series"]}
        self.assertEqual(shares, {"whole": 1.0, "late": 0.33, "gaps": 0.27, "weekly": 1.0})
        holes = "plt.plot(['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-30'], range(4)); save_figure('holes')"
        self.assertAlmostEqual(self.emitted(holes, "figure")[0]["series"][0]["coverage"], 4 / 30)
        intraday = (
            "plt.plot([f'2024-01-0{day} {hour:02}:00' for day in (1, 2, 3) for hour in (9, 10, 11)], range(9)); save_figure('x')"
        )
        self.assertEqual(self.emitted(intraday, "figure")[0]["series"][0]["coverage"], 1.0)
        words = "plt.plot(['a', 'b', 'c'], range(3)); save_figure('words')"
        self.assertNotIn("coverage", self.emitted(words, "figure")[0]["series"][0])

    @needs("altair", "pandas", "vl_convert")
    def test_altair_lines_report_their_coverage(self):
        for times, kind in (("pd.date_range('2024', periods=20)", "T"), ("[f'2024-01-{day:02}' for day in range(1, 21)]", "N")):
            code = (
                f"days = list({times})\nrows = [{{'day': day, 'v': float(at), 'who': 'whole'}} for at, day in enumerate(days)]\n"
                "rows += [{'day': day, 'v': 1.0 if at % 5 == 0 else None, 'who': 'gaps'} for at, day in enumerate(days)]\n"
                f"chart = alt.Chart(pd.DataFrame(rows)).mark_line().encode(x='day:{kind}', y='v:Q', color='who:N')\n"
                "save_figure('lines', fig=chart + alt.Chart(pd.DataFrame({'v': [3]})).mark_rule().encode(y='v:Q'))"
            )
            header, _ = self.emitted(code, "figure")
            self.assertEqual({one["label"]: one["coverage"] for one in header["series"]}, {"whole": 1.0, "gaps": 0.2}, kind)

    def test_lines_over_numbers_report_no_coverage(self):
        header, _ = self.emitted("plt.plot([1, 2, 3, 4], [1, float('nan'), 3, 4]); save_figure('numbers')", "figure")
        self.assertNotIn("coverage", header["series"][0])

    def test_points_outside_the_axis_limits_do_not_count(self):
        code = (
            "days = pd.date_range('2024', periods=100)\nplt.plot(days, np.arange(100)); plt.plot(days[90:], np.arange(10))\n"
            "plt.xlim(days[90], days[-1]); save_figure('end')"
        )
        header, _ = self.emitted(code, "figure")
        self.assertEqual([one["coverage"] for one in header["series"]], [1.0, 1.0])


class Charts(Derivation):
    SPEC = "{'type': 'line', 'xKey': 't', 'series': [{'key': 'price'}]}"

    def setUp(self):
        super().setUp()
        self.asked = []
        self.kernel.calls["check_chart"] = self.check

    def check(self, params, blobs):
        self.asked.append((params, json.loads(blobs[0])))
        bad = params["spec"]["series"][0]["key"] == "nope"
        return ({"error": {"code": "chart", "message": "series[0].key: there is no column nope"}} if bad else {"value": True},)

    def test_rows_and_specification_are_sent_once_the_host_agrees(self):
        header, blob = self.emitted(f"render_chart({self.SPEC}, {ROWS}, title='Prices', alt='rising')", "chart")
        self.assertEqual((header["title"], header["alt"], header["rows"], json.loads(blob)), ("Prices", "rising", 2, ROWS))
        self.assertEqual(self.asked, [({"spec": header["spec"], "title": "Prices", "alt": "rising"}, ROWS)])

    @needs("vl_convert")
    def test_the_specification_that_the_host_returns_is_drawn(self):
        spec = b'{"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "mark": "bar", "data": {"values": [{"a": 1}]}}'
        self.kernel.calls["check_chart"] = lambda params, blobs: ({"value": True}, spec)
        ran = self.completes(f"render_chart({self.SPEC}, {ROWS})")
        self.assertEqual((len(ran.blobs[0]), bytes(ran.blobs[0][1][:4]), ran.outputs[0].get("note")), (2, b"\x89PNG", None))

    def test_a_chart_without_a_renderer_is_data_with_a_note(self):
        self.kernel.calls["check_chart"] = lambda params, blobs: ({"value": True}, b"{}")
        ran = self.completes(f"import sys; sys.modules['vl_convert'] = None; render_chart({self.SPEC}, {ROWS})")
        self.assertIn("this image has no renderer for charts", ran.outputs[0]["note"])
        self.assertEqual(len(ran.blobs[0]), 1)

    def test_columns_and_flags_become_rows_of_numbers_and_text(self):
        _, blob = self.emitted(f"render_chart({self.SPEC}, {{'t': ['a', 'b'], 'price': [True, 2]}})", "chart")
        self.assertEqual(json.loads(blob), [{"t": "a", "price": 1}, {"t": "b", "price": 2}])

    def test_an_infinite_value_of_a_chart_is_reported(self):
        ran = self.completes(f"render_chart({self.SPEC}, {{'t': ['a', 'b'], 'price': [float('inf'), float('nan')]}})")
        self.assertEqual(json.loads(ran.blobs[0][0]), [{"t": "a", "price": None}, {"t": "b", "price": None}])
        found = [(it["code"], it["details"]) for it in ran.done["findings"]]
        self.assertEqual(found, [("infinite_values_to_null", {"count": 1, "first": "data['price'][0]"})])

    def test_two_columns_with_one_name_are_rejected(self):
        message = self.raises(f"render_chart({self.SPEC}, {{1: [1], '1': [2]}})")["message"]
        self.assertIn("data has the keys 1 and '1', both of them '1' as text", message)

    @needs("pandas")
    def test_the_index_of_a_frame_is_kept(self):
        code = f"f = pd.DataFrame({{'price': [1.5, np.nan]}}, index=pd.date_range('2024', periods=2, name='t')); render_chart({self.SPEC}, f)"
        _, blob = self.emitted(code, "chart")
        self.assertEqual(
            json.loads(blob), [{"t": "2024-01-01T00:00:00", "price": 1.5}, {"t": "2024-01-02T00:00:00", "price": None}]
        )

    def test_an_error_of_the_host_is_raised_with_its_message(self):
        error = self.raises("render_chart({'type': 'line', 'series': [{'key': 'nope'}]}, [{'a': 1}])")
        self.assertEqual(error["message"], "render_chart: series[0].key: there is no column nope")

    def test_data_that_is_not_a_table_is_rejected_before_the_host_is_called(self):
        for data, told in (
            ("5", "holds no rows"),
            ("[{'a': [1]}]", "data[0]['a'] is a list"),
            ("{'a': [1], 'b': [1, 2]}", "one length"),
        ):
            with self.subTest(data):
                self.assertIn(told, self.raises(f"render_chart({self.SPEC}, {data})")["message"])
        self.assertIn("spec is a str", self.raises("render_chart('line', [])")["message"])
        self.assertEqual(self.asked, [])

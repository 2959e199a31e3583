"""safe_merge_timeseries and align_timeseries: shapes, names, duplicates, buckets and gaps."""

import importlib.util
import subprocess
import sys

from tests.driver import PACKAGE
from tests.series import DAYS, SeriesTest, day, needs

if importlib.util.find_spec("pandas"):
    import pandas as pd

    from cellblock_kernel.timeseries import align_timeseries, safe_merge_timeseries

FLOWS = [{"timestamp": DAYS[0], "net_flow": 1.0, "volume": 5}, {"timestamp": DAYS[1], "net_flow": 2.0, "volume": 6}]
PRICES = {"status": "ok", "data": [{"date": DAYS[1], "price": 40.0, "volume": 7}, {"date": DAYS[2], "price": 41.0, "volume": 8}]}


def rows(frame):
    """The cells of a frame, with None for what is missing."""
    return {str(name): [None if value != value else value for value in frame[name].tolist()] for name in frame.columns}


def stamps(frame):
    return [str(one)[:16] for one in frame.index]


@needs("pandas")
class Names(SeriesTest):
    def test_columns_are_prefixed_and_keep_their_name_where_no_other_source_has_it(self):
        merged = safe_merge_timeseries(FLOWS, PRICES, names=["cg", "px"])
        self.assertEqual(
            rows(merged),
            {
                "cg_net_flow": [1, 2, None],
                "cg_volume": [5, 6, None],
                "px_price": [None, 40, 41],
                "px_volume": [None, 7, 8],
                "net_flow": [1, 2, None],
                "price": [None, 40, 41],
            },
        )
        self.assertEqual((merged.index.name, stamps(merged)), ("time", [f"{one} 00:00" for one in DAYS[:3]]))
        self.assertEqual(self.noted(merged, "colliding_columns")["details"], {"columns": ["volume"]})

    def test_a_dict_names_its_sources(self):
        named = safe_merge_timeseries({"cg": FLOWS, "px": PRICES})
        pd.testing.assert_frame_equal(named, safe_merge_timeseries([FLOWS, PRICES], names=["cg", "px"]))

    def test_an_alias_never_hides_a_prefixed_column(self):
        merged = safe_merge_timeseries([{"t": DAYS[0], "v": 1}], [{"t": DAYS[0], "a_v": 2}], names=["a", "b"])
        self.assertEqual(rows(merged), {"a_v": [1], "b_a_v": [2], "v": [1]})
        self.assertEqual(
            self.noted(merged, "colliding_columns")["message"],
            "'a_v' can mean several columns, so only the prefixed columns exist",
        )

    def test_without_names_only_colliding_columns_are_renamed(self):
        merged = safe_merge_timeseries(FLOWS, PRICES)
        self.assertEqual(list(merged.columns), ["net_flow", "source_1_volume", "price", "source_2_volume"])
        self.assertEqual(self.noted(merged, "colliding_columns")["details"], {"columns": ["volume"]})

    def test_the_index_can_become_a_column(self):
        merged = safe_merge_timeseries([{"t": DAYS[0], "a": 1}], [{"t": DAYS[0], "b": 2}], names=["x", "y"])
        self.assertEqual(list(merged.reset_index().columns), ["t", "x_a", "y_b", "a", "b"])
        odd = safe_merge_timeseries([{"t": DAYS[0], "time": 1}], [{"date": DAYS[0], "b": 2}], time_col=["t", "date"])
        self.assertEqual(list(odd.reset_index().columns), ["time_bucket", "time", "b"])

    def test_mismatched_names_are_rejected(self):
        for kind, message, given, options in (
            (ValueError, "names has 1 entry for 2 sources; give one per source", (FLOWS, PRICES), {"names": ["a"]}),
            (ValueError, "names must differ from each other: 'a', 'a'", (FLOWS, PRICES), {"names": ["a", "a"]}),
            (TypeError, "names must be a list of non-empty strings, one per source, not 'ab'", (FLOWS, PRICES), {"names": "ab"}),
            (
                ValueError,
                "the result would have several columns named 'a_b_c'; choose other names=, or rename columns first",
                ([{"t": DAYS[0], "b_c": 1}], [{"t": DAYS[0], "c": 1}]),
                {"names": ["a", "a_b"]},
            ),
            (ValueError, "how 'cross' is not a valid join; expected one of outer, inner, left", (FLOWS,), {"how": "cross"}),
            (TypeError, "no source was given; pass one or more DataFrames or lists of rows", (), {}),
            (
                ValueError,
                "source 1 has several columns named 'a'; rename them first",
                (pd.DataFrame([[1, 2]], columns=["a", "a"]),),
                {},
            ),
            (
                ValueError,
                "duplicates names 'vol', which is a column of no source; there are 'net_flow', 'timestamp', 'volume'",
                (FLOWS,),
                {"duplicates": {"vol": "sum"}},
            ),
            (
                ValueError,
                "time_col has 1 entry for 2 sources; give one name, or one per source",
                (FLOWS, PRICES),
                {"time_col": ["t"]},
            ),
            (ValueError, "time_col names 'z', which is not a source", ({"a": FLOWS, "b": PRICES},), {"time_col": {"z": "t"}}),
            (
                ValueError,
                "source 'b' has no column 'ts'; it has 'date', 'price', 'volume'",
                ({"a": FLOWS, "b": PRICES},),
                {"time_col": {"b": "ts"}},
            ),
            (
                ValueError,
                "the columns of source 1 make no table: All arrays must be of the same length",
                ({"t": [1], "v": [1, 2]},),
                {},
            ),
        ):
            with self.subTest(message):
                self.refused(kind, message, safe_merge_timeseries, *given, **options)


@needs("pandas")
class Sources(SeriesTest):
    def test_every_shape_of_a_source_gives_the_same(self):
        frame = pd.DataFrame({"ts": DAYS[:2], "value": [1.0, 2.0]})
        expected = [1.0, 2.0]
        for given in (
            frame,
            frame.set_index(pd.to_datetime(frame.ts))[["value"]],
            pd.Series(expected, index=pd.to_datetime(DAYS[:2])),
            pd.Series(expected, index=pd.period_range(DAYS[0], periods=2, freq="D"), name="value"),
            frame.to_dict("records"),
            frame.to_dict("list"),
            {"meta": {"page": 1}, "ok": True, "result": {"items": frame.to_dict("records")}},
            [[day(1) * 1000, 1.0], [day(2) * 1000, 2.0]],
            {"values": [[day(1), 1.0], [day(2), 2.0]]},
        ):
            merged = safe_merge_timeseries(given)
            self.assertEqual((rows(merged), stamps(merged)), ({"value": expected}, [f"{one} 00:00" for one in DAYS[:2]]))

    @needs("polars", "pyarrow")
    def test_polars_is_accepted(self):
        import polars as pl

        merged = safe_merge_timeseries(pl.DataFrame(FLOWS), PRICES)
        self.assertEqual(merged.net_flow.tolist()[:2], [1, 2])

    def test_several_lists_of_pairs_in_one_dict_are_sources_by_name(self):
        merged = safe_merge_timeseries({"prices": [[day(1) * 1000, 5.0]], "caps": [[day(1) * 1000, 9.0]]})
        self.assertEqual(rows(merged), {"prices_value": [5], "caps_value": [9]})

    def test_the_sources_are_not_changed(self):
        frame = pd.DataFrame({"ts": DAYS[:2][::-1], "value": [1.0, 2.0]})
        frame.attrs["mine"] = 1
        before = frame.copy()
        merged = safe_merge_timeseries(frame, FLOWS, freq="D")
        pd.testing.assert_frame_equal(frame, before)
        self.assertEqual((frame.attrs, list(merged.attrs)), ({"mine": 1}, ["data_quality"]))

    def test_a_source_without_rows_is_noted(self):
        merged = safe_merge_timeseries({"a": FLOWS, "b": [], "c": pd.DataFrame({"date": [], "x": []})})
        self.assertEqual(rows(merged)["c_x"], [None, None])
        self.assertEqual([one["series"] for one in merged.attrs["data_quality"] if one["code"] == "empty_source"], ["b", "c"])
        nothing = safe_merge_timeseries([], [])
        self.assertEqual((nothing.shape, str(nothing.index.dtype)), ((0, 0), "datetime64[us, UTC]"))

    def test_the_join_decides_about_buckets_and_fills_nothing(self):
        for how, expected in (("outer", DAYS[:3]), ("inner", [DAYS[1]]), ("left", DAYS[:2])):
            self.assertEqual(stamps(safe_merge_timeseries(FLOWS, PRICES, how=how)), [f"{one} 00:00" for one in expected])

    def test_incomplete_coverage_is_reported_for_each_source(self):
        merged = safe_merge_timeseries({"a": FLOWS, "b": [{"t": one, "v": 1} for one in DAYS[:4]]})
        self.assertEqual(self.noted(merged, "source_coverage")["details"], {"buckets": 4, "covered": 2, "share": 0.5})


@needs("pandas")
class Buckets(SeriesTest):
    def test_a_null_placeholder_never_wins_in_any_column(self):
        given = [
            {"t": f"{DAYS[0]}T00:00", "a": None, "b": 1.0, "s": None},
            {"t": f"{DAYS[0]}T09:00", "a": 5.0, "b": 3.0, "s": "x"},
            {"t": f"{DAYS[0]}T18:00", "a": None, "b": None, "s": None},
        ]
        for policy, b in (("last", 3), ("first", 1), ("sum", 4), ("mean", 2), ("max", 3), ("min", 1)):
            merged = safe_merge_timeseries(given, freq="D", duplicates=policy)
            self.assertEqual(rows(merged), {"a": [5], "b": [b], "s": ["x"]})
            self.assertEqual(self.noted(merged, "duplicate_buckets")["details"]["placeholders"], 1)
        mixed = safe_merge_timeseries(given, freq="D", duplicates={"b": "sum"})
        self.assertEqual(rows(mixed), {"a": [5], "b": [4], "s": ["x"]})
        self.refused(
            ValueError,
            "source 1 has 2 samples of 'b' in the bucket 2024-01-01 00:00:00+00:00, the first of 1 conflict; choose one with duplicates=, of last, first, sum, mean, max, min",
            safe_merge_timeseries,
            given,
            freq="D",
            duplicates="error",
        )

    def test_time_decides_which_row_is_last(self):
        given = [{"t": f"{DAYS[0]}T18:00", "v": 18}, {"t": f"{DAYS[0]}T09:00", "v": 9}]
        self.assertEqual(rows(safe_merge_timeseries(given, freq="D")), {"v": [18]})
        self.assertEqual(rows(safe_merge_timeseries(given, freq="D", duplicates="first")), {"v": [9]})

    def test_the_sum_of_nulls_is_null(self):
        given = [{"t": DAYS[0], "v": None, "w": 1}, {"t": DAYS[0], "v": None, "w": 1}]
        self.assertEqual(rows(safe_merge_timeseries(given, duplicates="sum")), {"v": [None], "w": [2]})

    def test_text_is_not_summed(self):
        given = [{"t": DAYS[0], "v": 1, "s": "x"}, {"t": DAYS[0], "v": 2, "s": "y"}]
        merged = safe_merge_timeseries(given, duplicates="sum")
        self.assertEqual(rows(merged), {"v": [3], "s": ["y"]})
        self.assertIn("('last' for 's', which hold no numbers)", self.noted(merged, "duplicate_buckets")["message"])

    def test_sources_meet_in_the_buckets_of_the_coarsest(self):
        hourly = [{"t": day(1) + hour * 3600, "h": hour} for hour in range(72)]
        daily = [{"t": day(number) + 7, "d": number} for number in (1, 2, 3)]
        merged = safe_merge_timeseries(hourly, daily)
        self.assertEqual(
            (rows(merged), stamps(merged)), ({"h": [23, 47, 71], "d": [1, 2, 3]}, [f"{one} 00:00" for one in DAYS[:3]])
        )
        self.assertEqual(self.noted(merged, "buckets_inferred")["details"], {"freq": "D", "moved": 72})

        # Two samples tell less of a step than many do.
        few = safe_merge_timeseries(hourly, daily[:2])
        self.assertEqual((len(few), self.noted(few, "buckets_inferred")["details"]), (72, {"freq": "h", "moved": 2}))

    def test_times_on_one_grid_are_left_alone(self):
        half_past = [{"t": f"{DAYS[0]}T09:30", "v": 1}, {"t": f"{DAYS[0]}T10:30", "v": 2}, {"t": f"{DAYS[0]}T12:30", "v": 3}]
        merged = safe_merge_timeseries(half_past)
        self.assertEqual((stamps(merged), self.codes(merged)), ([f"{DAYS[0]} {one}" for one in ("09:30", "10:30", "12:30")], []))

    def test_rare_events_do_not_make_the_buckets_of_samples_coarse(self):
        hourly = [{"t": day(1) + hour * 3600 + hour % 3, "h": hour} for hour in range(12)]
        events = [{"t": day(1) + second, "e": 1} for second in (0, 5, 3605, 9999, 10_000, 90_000)]
        merged = safe_merge_timeseries(hourly, events)
        self.assertEqual(self.noted(merged, "buckets_inferred")["details"]["freq"], "h")

    def test_every_spelling_of_a_frequency_is_its_bucket(self):
        given = [{"t": "2024-05-16T13:47:12.345678Z", "v": 1}]
        import datetime

        for freq, expected in (
            *((one, "2024-05-16 13:47:12") for one in ("s", "S", "1s", "second")),
            *((one, "2024-05-16 13:47:00") for one in ("min", "T", "1m", "minute")),
            *((one, "2024-05-16 13:45:00") for one in ("15min", "15m", "15 minutes", datetime.timedelta(minutes=15))),
            *((one, "2024-05-16 13:00:00") for one in ("h", "H", "hourly", datetime.timedelta(hours=1))),
            *((one, "2024-05-16 12:00:00") for one in ("4h", "12h")),
            *((one, "2024-05-16 00:00:00") for one in ("D", "d", "day", "daily", "1D", datetime.timedelta(days=1))),
            *((one, "2024-05-13 00:00:00") for one in ("W", "w", "weekly")),
            *((one, "2024-05-01 00:00:00") for one in ("M", "MS", "ME", "month", "monthly")),
            *((one, "2024-04-01 00:00:00") for one in ("Q", "QS", "quarterly")),
            *((one, "2024-01-01 00:00:00") for one in ("Y", "YE", "A", "yearly")),
        ):
            with self.subTest(freq):
                self.assertEqual(str(safe_merge_timeseries(given, freq=freq, tz=None).index[0])[:19], expected)

    def test_invalid_frequencies_are_rejected(self):
        expected = 'expected for example "15min", "h", "4h", "D", "W", "M", "Q" or "Y"'
        import datetime

        for freq, message in (
            ("fortnight", f"freq 'fortnight' is not a valid frequency; {expected}"),
            ("0h", f"freq '0h' is not a valid frequency; {expected}"),
            (5, f"freq 5 is not a valid frequency; {expected}"),
            ("2M", f"freq '2M' must not count several calendar periods; {expected}"),
            (datetime.timedelta(0), "freq is 0:00:00; must be greater than 0"),
        ):
            self.refused(ValueError, message, safe_merge_timeseries, FLOWS, freq=freq)

    def test_buckets_follow_the_clock_of_the_zone(self):
        night = [{"t": "2024-11-03T05:30Z", "v": 1}, {"t": "2024-11-03T06:30Z", "v": 2}, {"t": "2024-11-04T04:30Z", "v": 3}]
        hours = safe_merge_timeseries(night, freq="h", tz="America/New_York")
        self.assertEqual(
            [str(one) for one in hours.index],
            ["2024-11-03 01:00:00-04:00", "2024-11-03 01:00:00-05:00", "2024-11-03 23:00:00-05:00"],
        )
        days = safe_merge_timeseries(night, freq="D", tz="America/New_York", duplicates="sum")
        self.assertEqual(([str(one) for one in days.index], days.v.tolist()), (["2024-11-03 00:00:00-04:00"], [6]))
        self.refused(
            ValueError,
            'tz \'Mars/Base\' is not a valid time zone; expected for example "UTC" or "Europe/Berlin"',
            safe_merge_timeseries,
            night,
            tz="Mars/Base",
        )
        self.refused(TypeError, 'tz is an int; expected a name such as "UTC", or None', safe_merge_timeseries, night, tz=5)


@needs("pandas")
class Aligned(SeriesTest):
    def test_the_result_has_the_shape_of_the_arguments(self):
        series = pd.Series([1.0], index=pd.to_datetime(DAYS[:1]), name="s")
        mapping = align_timeseries({"a": FLOWS, "b": PRICES, "c": series})
        self.assertEqual(list(mapping), ["a", "b", "c"])
        self.assertEqual(
            (rows(mapping["a"]), rows(mapping["b"])["price"]), ({"net_flow": [1, 2, None], "volume": [5, 6, None]}, [None, 40, 41])
        )
        self.assertIsInstance(mapping["c"], pd.Series)
        self.assertTrue(mapping["a"].index.equals(mapping["b"].index))
        for several in (align_timeseries(FLOWS, PRICES), align_timeseries([FLOWS, PRICES])):
            self.assertEqual([type(one) for one in several], [pd.DataFrame, pd.DataFrame])
        self.assertEqual(rows(align_timeseries(FLOWS)), {"net_flow": [1, 2], "volume": [5, 6]})
        self.assertEqual(rows(align_timeseries(PRICES))["price"], [40, 41])

    def test_each_source_is_reported_with_its_coverage(self):
        one, _ = align_timeseries(FLOWS, PRICES, names=["a", "b"])
        shares = {note["series"]: note["details"] for note in one.attrs["data_quality"] if note["code"] == "source_coverage"}
        self.assertEqual(
            shares, {"a": {"buckets": 3, "covered": 2, "share": 0.6667}, "b": {"buckets": 3, "covered": 2, "share": 0.6667}}
        )

    def test_gaps_are_filled_only_on_request(self):
        given = [{"t": DAYS[0], "v": 1.0}, {"t": DAYS[3], "v": 7.0}]
        for options, expected in (
            ({}, [1, None, None, 7, None]),
            ({"fill": "ffill"}, [1, 1, 1, 7, 7]),
            ({"fill": "ffill", "fill_limit": 1}, [1, 1, None, 7, 7]),
            ({"fill": "bfill"}, [1, 7, 7, 7, None]),
            ({"fill": "linear"}, [1, 3, 5, 7, None]),
            ({"fill": 0}, [1, 0, 0, 7, 0]),
        ):
            with self.subTest(**options):
                aligned, _ = align_timeseries(given, [{"t": DAYS[4], "w": 1}], freq="D", whole=True, **options)
                self.assertEqual(rows(aligned), {"v": expected})
                filled = [one["details"]["values"] for one in aligned.attrs["data_quality"] if one["code"] == "filled_gaps"]
                self.assertEqual(filled[:1], [sum(one is not None for one in expected) - 2] if options else [])

    def test_a_whole_grid_has_every_bucket(self):
        for freq, times, count in (
            ("D", [DAYS[0], DAYS[5]], 6),
            ("6h", [DAYS[0], DAYS[1]], 5),
            ("W", ["2024-01-03", "2024-01-25"], 4),
            ("M", ["2024-01-31", "2024-04-01"], 4),
            ("Q", ["2023-12-31", "2024-12-31"], 5),
            ("Y", ["2020-05-01", "2024-01-01"], 5),
        ):
            for tz in ("UTC", "America/New_York", None):
                with self.subTest(freq, tz=tz):
                    aligned = align_timeseries([{"t": f"{one}T12:00", "v": 1} for one in times], freq=freq, whole=True, tz=tz)
                    self.assertEqual(len(aligned), count)
                    self.assertEqual(aligned.v.notna().sum(), 2)

    def test_a_repeated_or_skipped_hour_is_not_a_gap(self):
        for first, last, count in (("2024-11-03T04:30Z", "2024-11-03T07:30Z", 4), ("2024-03-10T06:30Z", "2024-03-10T08:30Z", 3)):
            aligned = align_timeseries([{"t": first, "v": 1}, {"t": last, "v": 1}], freq="h", whole=True, tz="America/New_York")
            self.assertEqual((len(aligned), aligned.index.is_unique), (count, True))

    def test_contradictory_options_are_rejected(self):
        for message, options in (
            ("fill 'magic' is not a valid fill; expected None, a number, or one of ffill, bfill, linear", {"fill": "magic"}),
            ("fill True is not a valid fill; expected None, a number, or one of ffill, bfill, linear", {"fill": True}),
            ("fill_limit 0 is not a valid number of buckets; expected 1 or more", {"fill": "ffill", "fill_limit": 0}),
            ("fill_limit needs fill= to be one of ffill, bfill, linear", {"fill": 0, "fill_limit": 1}),
            ("whole=True needs freq=, the distance of the buckets", {"whole": True}),
            ("how 'x' is not a valid join; expected one of outer, inner, left", {"how": "x"}),
        ):
            self.refused(ValueError, message, align_timeseries, FLOWS, **options)
        self.refused(
            ValueError,
            "there are more than 5,000,000 buckets of s from 1970-01-01 00:00:00 to 2024-01-01 00:00:00; choose a coarser freq=",
            align_timeseries,
            [{"t": 0, "v": 1}, {"t": day(1), "v": 1}],
            freq="s",
            whole=True,
        )


class Imports(SeriesTest):
    def test_no_module_of_the_kernel_imports_them(self):
        code = (
            "import importlib, pathlib, sys\n"
            "apart = ('cellblock_kernel.timeseries', 'cellblock_kernel.__main__')\n"
            "for path in sorted(pathlib.Path('cellblock_kernel').rglob('*.py')):\n"
            "    name = '.'.join(path.with_suffix('').parts)\n"
            "    name.startswith(apart) or importlib.import_module(name.removesuffix('.__init__'))\n"
            "print(sorted({'pandas', 'numpy', 'cellblock_kernel.timeseries'} & set(sys.modules)))\n"
        )
        ran = subprocess.run([sys.executable, "-B", "-c", code], cwd=PACKAGE, capture_output=True, text=True)
        self.assertEqual((ran.stdout, ran.stderr), ("[]\n", ""))

    @needs("pandas")
    def test_the_package_exports_three_functions(self):
        from cellblock_kernel import timeseries

        self.assertEqual(timeseries.__all__, ["align_timeseries", "derive_change_series", "safe_merge_timeseries"])

"""derive_change_series: a worked example for each way in which a population changes."""

import importlib.util
import random
from decimal import Decimal

from cellblock_kernel.library import findings
from tests.series import DAYS, FLOWS, SeriesTest, needs

if importlib.util.find_spec("pandas"):
    import pandas as pd

    from cellblock_kernel.timeseries import derive_change_series

NAN = float("nan")


def wide(**entities):
    count = len(next(iter(entities.values())))
    return pd.DataFrame({"date": DAYS[:count], **entities})


@needs("pandas")
class Membership(SeriesTest):
    def flows(self, frame):
        self.holds(frame)
        return {column: frame[column].tolist() for column in FLOWS}

    def test_a_listing_is_not_an_inflow(self):
        result = derive_change_series(wide(a=[100.0, 101, 103], b=[50.0, 51, 49], new=[None, 35_000.0, 35_010]))
        self.assertEqual(
            self.flows(result),
            {
                "total_value": [150, 35_152, 35_162],
                "total_change": [0, 35_002, 10],
                "stable_entities_change": [0, 2, 10],
                "coverage_change": [0, 35_000, 0],
            },
        )
        self.assertEqual(result.entering_entity_count.tolist(), [0, 1, 0])
        self.assertEqual(result.exiting_entity_count.tolist(), [0, 0, 0])
        self.assertEqual(
            result.attrs["coverage_events"],
            [
                {
                    "period": "2024-01-02T00:00:00+00:00",
                    "entity": "new",
                    "kind": "entered",
                    "value": 35_000,
                    "change": 35_000,
                    "previous_value": None,
                    "next_value": 35_000,
                }
            ],
        )

    def test_a_delisting_is_not_an_outflow(self):
        result = derive_change_series(wide(a=[100.0, 101, 103], gone=[70.0, 71, None]))
        self.assertEqual(
            self.flows(result),
            {
                "total_value": [170, 172, 103],
                "total_change": [0, 2, -69],
                "stable_entities_change": [0, 2, 2],
                "coverage_change": [0, 0, -71],
            },
        )
        self.assertEqual(result.exiting_entity_count.tolist(), [0, 0, 1])
        (event,) = result.attrs["coverage_events"]
        self.assertEqual((event["kind"], event["value"], event["change"]), ("exited", 71, -71))
        self.assertEqual((event["previous_value"], event["next_value"]), (71, None))

    def test_a_gap_and_its_end_are_two_changes_of_coverage(self):
        result = derive_change_series(wide(a=[100.0, 100, 100, 100], b=[50.0, None, None, 60]))
        self.assertEqual(
            self.flows(result),
            {
                "total_value": [150, 100, 100, 160],
                "total_change": [0, -50, 0, 60],
                "stable_entities_change": [0, 0, 0, 0],
                "coverage_change": [0, -50, 0, 60],
            },
        )
        events = result.attrs["coverage_events"]
        self.assertEqual(
            [(one["kind"], one["period"][:10], one["change"]) for one in events], [("gap", DAYS[1], -50), ("resumed", DAYS[3], 60)]
        )
        self.assertEqual([(one["previous_value"], one["next_value"]) for one in events], [(50, 60), (50, 60)])
        self.assertEqual(result.attrs["coverage_event_count"], {"entered": 0, "exited": 0, "gap": 1, "resumed": 1})

    def test_a_null_placeholder_never_hides_the_sample_of_its_day(self):
        rows = [
            {"timestamp": "2024-01-01T12:00:00Z", "venue": "a", "reserve": 10},
            {"timestamp": "2024-01-02T00:00:00Z", "venue": "a", "reserve": None},
            {"timestamp": "2024-01-02T12:00:00Z", "venue": "a", "reserve": 12},
            {"timestamp": "2024-01-03T12:00:00Z", "venue": "a", "reserve": 15},
            {"timestamp": "2024-01-03T18:00:00Z", "venue": "a", "reserve": None},
        ]
        for policy in ("last", "first", "sum", "mean", "max", "min", "error"):
            for options in ({"freq": "D"}, {}):
                with self.subTest(policy, **options):
                    result = derive_change_series(rows, duplicates=policy, **options)
                    self.assertEqual(self.flows(result)["total_value"], [10, 12, 15])
                    self.assertEqual(result.stable_entities_change.tolist(), [0, 2, 3])
                    self.assertEqual(result.attrs["coverage_events"], [])
                    note = self.noted(result, "duplicate_buckets")
                    self.assertEqual(note["details"], {"buckets": 2, "rows": 4, "placeholders": 2, "policy": policy})

    def test_selecting_entities_does_not_change_the_total(self):
        data = wide(a=[100.0, 110, 120], b=[50.0, 40, 45], c=[1.0, 2, 4], d=[None, 500.0, 501])
        whole = derive_change_series(data)
        for selected, names, change in (
            (2, ["d", "a"], [0, 10, 11]),
            (["b"], ["b"], [0, -10, 5]),
            (["a", "b", "c", "d"], ["a", "b", "c", "d"], [0, 1, 18]),
            (99, ["d", "a", "b", "c"], [0, 1, 18]),
            ([], [], [0, 0, 0]),
        ):
            with self.subTest(selected):
                result = derive_change_series(data, selected=selected)
                self.assertEqual(result.attrs["selected_entities"], names)
                self.assertEqual(result.selected_entities_change.tolist(), change)
                pd.testing.assert_frame_equal(result.drop(columns="selected_entities_change"), whole, check_like=False)

    def test_an_entity_that_left_ranks_after_those_that_remain(self):
        result = derive_change_series(wide(small=[1.0, 1], gone=[900.0, None]), selected=1)
        self.assertEqual(result.attrs["selected_entities"], ["small"])

    def test_long_rows_give_the_same_as_the_wide_table(self):
        data = wide(a=[100.0, None, 103, 104], b=[None, 51.0, None, 52], c=[7.0, 8, 9, None])
        rows = data.melt(id_vars="date", var_name="venue", value_name="btc").sample(frac=1, random_state=1)
        expected = derive_change_series(data)
        for given in (rows, rows.dropna(), rows.to_dict("records"), rows.to_dict("list"), {"data": rows.to_dict("records")}):
            result = derive_change_series(given)
            pd.testing.assert_frame_equal(result, expected)
            self.assertEqual(len(result.attrs["coverage_events"]), 6)
        named = derive_change_series(rows, time_col="date", entity_col="venue", value_col="btc", selected=["b"])
        self.assertEqual(named.selected_entities_change.tolist(), [0, 0, 0, 0])

    def test_the_first_period_has_nothing_to_compare_with(self):
        result = derive_change_series(wide(a=[5.0]))
        self.assertEqual(self.flows(result), dict(zip(FLOWS, [[5], [0], [0], [0]])))
        self.assertEqual((result.entering_entity_count.tolist(), result.attrs["coverage_events"]), ([0], []))

    def test_no_rows_give_no_periods(self):
        for given in ([], {}, pd.DataFrame(), pd.DataFrame({"date": [], "a": []}), {"date": [], "a": []}):
            result = derive_change_series(given)
            self.assertEqual(result.shape, (0, 6))
            self.assertEqual(str(result.index.dtype), "datetime64[us, UTC]")
            self.assertEqual([str(kind) for kind in result.dtypes], ["float64"] * 4 + ["int64"] * 2)
            self.noted(result, "empty_source")
        self.assertEqual(derive_change_series([], selected=3).shape, (0, 7))

    def test_a_period_without_observations_has_no_total(self):
        result = derive_change_series(wide(a=[5.0, None, 7], b=[1.0, None, 1]))
        self.holds(result)
        self.assertEqual(str(result.total_value.tolist()), str([6.0, NAN, 8.0]))
        self.assertEqual(result.total_change.tolist(), [0, -6, 8])
        self.assertEqual(result.stable_entities_change.tolist(), [0, 0, 0])
        self.assertEqual(self.noted(result, "unobserved_periods")["details"], {"count": 1, "first": "2024-01-02T00:00:00+00:00"})

    def test_entities_that_never_report_are_named(self):
        result = derive_change_series(wide(a=[1.0, 2], silent=[None, None]))
        self.assertEqual(result.total_value.tolist(), [1, 2])
        self.assertEqual(self.noted(result, "unobserved_entities")["details"], {"entities": ["silent"], "count": 1})
        nobody = derive_change_series([{"date": DAYS[0], "a": None}, {"date": DAYS[1], "a": None}])
        self.holds(nobody)
        self.assertEqual((nobody.total_value.isna().tolist(), nobody.total_change.tolist()), ([True, True], [0, 0]))

    def test_an_infinite_value_is_not_observed(self):
        result = derive_change_series(wide(a=[1.0, float("inf"), 3], b=[1.0, 1, 1]))
        self.holds(result)
        self.assertEqual(result.total_value.tolist(), [2, 1, 4])
        self.assertEqual(self.noted(result, "infinite_values")["details"], {"count": 1})
        rows = [{"date": DAYS[0], "e": "a", "v": 4.0}, {"date": DAYS[0], "e": "a", "v": float("-inf")}]
        self.assertEqual(derive_change_series(rows).total_value.tolist(), [4])


@needs("pandas")
class Shapes(SeriesTest):
    def test_columns_of_text_and_booleans_are_not_entities(self):
        data = wide(a=[1.0, 2], note=["x", "y"], final=[True, False], b=[1, 1])
        result = derive_change_series(data)
        self.assertEqual(result.total_value.tolist(), [2, 3])
        self.assertEqual(self.noted(result, "ignored_columns")["details"], {"columns": ["note", "final"]})

    def test_columns_of_times_are_not_entities(self):
        data = wide(a=[1.0, 2], updated_at=[1_704_067_200, 1_704_153_600], year=[2024, 2024], T=[5, 5])
        for given in (data, data.set_index(pd.to_datetime(data.date))):
            result = derive_change_series(given)
            self.assertEqual(result.total_value.tolist(), [6, 7])
            self.assertEqual(self.noted(result, "ignored_columns")["details"]["columns"][-2:], ["updated_at", "year"])
        rows = [{"date": DAYS[0], "e": one, "v": 1.0, "ts_ms": 1_704_067_200_000} for one in ("a", "b")]
        self.assertEqual(derive_change_series(rows, time_col="date").total_value.tolist(), [2])

    def test_repeated_text_names_entities_but_remarks_do_not(self):
        rows = [{"date": DAYS[0], "e": "a", "v": 1}, {"date": DAYS[1], "e": "b", "v": 5}, {"date": DAYS[2], "e": "a", "v": 2}]
        result = derive_change_series(rows)
        self.assertEqual(result.coverage_change.tolist(), [0, 4, -3])
        self.assertEqual(self.noted(result, "long_rows_inferred")["message"], "data: each row is the value 'v' of the entity 'e'")
        remarks = derive_change_series([{**row, "e": f"remark {number}"} for number, row in enumerate(rows)])
        self.assertEqual((remarks.stable_entities_change.tolist(), self.codes(remarks)), ([0, 4, -3], ["ignored_columns"]))

    def test_numbers_of_every_dtype_are_entities(self):
        data = wide(
            big=[2**70, 2**71],
            exact=[Decimal("0.5"), None],
            nullable=pd.array([1, None], dtype="Int64"),
            small=pd.array([1, 2], dtype="uint8"),
        )
        self.assertEqual(derive_change_series(data).total_value.tolist(), [2.0**70 + 2.5, 2.0**71 + 2])

    def test_numbers_that_arrive_as_text_are_numbers_in_long_rows(self):
        rows = [{"date": DAYS[0], "venue": "a", "btc": "1.5"}, {"date": DAYS[1], "venue": "a", "btc": None}]
        result = derive_change_series(rows)
        self.assertEqual(result.total_change.tolist(), [0, -1.5])
        self.assertEqual(self.noted(result, "numbers_from_text")["series"], "btc")

    def test_series_and_frames_of_other_libraries_are_accepted(self):
        series = pd.Series([1.0, 3], index=pd.to_datetime(DAYS[:2]), name="a")
        self.assertEqual(derive_change_series(series).total_change.tolist(), [0, 2])

    @needs("polars", "pyarrow")
    def test_polars_is_accepted(self):
        import polars as pl

        data = pl.DataFrame({"date": DAYS[:2], "a": [1.0, 3.0]})
        self.assertEqual(derive_change_series(data).total_change.tolist(), [0, 2])
        self.assertEqual(derive_change_series(data.unpivot(index="date")).total_change.tolist(), [0, 2])

    def test_the_index_is_the_periods_under_the_name_of_the_time(self):
        result = derive_change_series(wide(b=[1.0, 2]).iloc[::-1], tz="Europe/Berlin")
        self.assertEqual(result.index.name, "date")
        self.assertEqual([str(one) for one in result.index], ["2024-01-01 01:00:00+01:00", "2024-01-02 01:00:00+01:00"])
        plain = derive_change_series(wide(b=[1.0, 2]), tz=None)
        self.assertEqual([str(one) for one in plain.index], ["2024-01-01 00:00:00", "2024-01-02 00:00:00"])

    def test_times_are_floored_before_anything_is_compared(self):
        rows = [
            {"ts": "2024-01-01T00:00:03Z", "venue": "a", "v": 1},
            {"ts": "2024-01-01T00:00:09Z", "venue": "b", "v": 10},
            {"ts": "2024-01-02T00:00:05Z", "venue": "a", "v": 2},
            {"ts": "2024-01-02T00:00:01Z", "venue": "b", "v": 20},
            {"ts": "2024-01-04T00:00:02Z", "venue": "a", "v": 4},
            {"ts": "2024-01-04T00:00:02Z", "venue": "b", "v": 40},
        ]
        result = derive_change_series(rows)
        self.holds(result)
        self.assertEqual(result.total_value.tolist(), [11, 22, 44])
        self.assertEqual(result.stable_entities_change.tolist(), [0, 11, 22])
        codes = self.codes(result)
        self.assertEqual(codes, ["long_rows_inferred", "buckets_inferred", "missing_periods"])
        self.assertEqual(self.noted(result, "missing_periods")["details"], {"count": 1, "first": "2024-01-04T00:00:00+00:00"})

    def test_a_day_begins_at_midnight_of_the_zone(self):
        rows = [{"t": "2024-03-10T04:30:00Z", "a": 1}, {"t": "2024-03-10T05:30:00Z", "a": 2}, {"t": "2024-03-11T04:30:00Z", "a": 3}]
        result = derive_change_series(rows, tz="America/New_York", freq="D")
        self.assertEqual(
            [str(one) for one in result.index],
            ["2024-03-09 00:00:00-05:00", "2024-03-10 00:00:00-05:00", "2024-03-11 00:00:00-04:00"],
        )
        self.assertNotIn("missing_periods", self.codes(result))

    def steps(self, step, count, every, freq=None):
        """The change over an entity that reports each `step`, and over one that reports only at each `every`-th of these times."""
        times = pd.date_range("2024", periods=count, freq=step)
        rows = [{"time": time, "who": "often", "level": 100.0 + 5 * at} for at, time in enumerate(times)]
        rows += [{"time": time, "who": "seldom", "level": 50.0 + 10 * at} for at, time in enumerate(times[::every])]
        table = pd.DataFrame(rows)
        wide = table.pivot(index="time", columns="who", values="level")
        return (derive_change_series(data, freq=freq) for data in (table, wide))

    def test_an_entity_with_a_coarser_step_does_not_leave_between_samples(self):
        for result in self.steps("h", 9, every=4):
            self.holds(result)
            self.assertEqual([str(time.time()) for time in result.index], ["00:00:00", "04:00:00", "08:00:00"])
            self.assertEqual(result.attrs["coverage_events"], [])
            # The last level of each four hours: 115, 135, 140 beside 50, 60, 70.
            self.assertEqual(result.stable_entities_change.tolist(), [0.0, 30.0, 15.0])
            found = self.noted(result, "buckets_inferred")
            self.assertEqual(found["details"]["freq"], "4h")

    def test_missing_samples_do_not_make_a_step_coarser(self):
        times = pd.date_range("2024", periods=200, freq="h")
        chance = random.Random(4)
        gappy = [float(at) if chance.random() < 0.3 else NAN for at in range(200)]
        result = derive_change_series(pd.DataFrame({"time": times, "whole": 1.0, "gappy": gappy}))
        self.assertEqual((len(result), "buckets_inferred" in self.codes(result)), (200, False))

    def test_entities_that_report_less_often_are_named(self):
        for result in (*self.steps("D", 29, every=7), *self.steps("h", 9, every=4, freq="h")):
            found = next(one for one in result.attrs["data_quality"] if one["code"] == "slower_entities")
            self.assertEqual(found["details"]["entities"], ["seldom"])
            self.assertIn("'seldom' report less often than every", found["message"])
        for result in self.steps("D", 29, every=7, freq="W"):
            self.assertNotIn("slower_entities", self.codes(result))

    def test_duplicates_follow_the_policy_in_both_shapes(self):
        data = pd.DataFrame(
            {"t": ["2024-01-01T10", "2024-01-01T09", "2024-01-01T11"], "a": [1.0, 5.0, 3.0], "b": [None, None, 2.0]}
        )
        rows = data.melt(id_vars="t", var_name="e", value_name="v")
        for policy, total in (("last", 5), ("first", 7), ("sum", 11), ("mean", 5), ("max", 7), ("min", 3)):
            for given in (data, rows):
                with self.subTest(policy):
                    self.assertEqual(derive_change_series(given, freq="D", duplicates=policy).total_value.tolist(), [total])

    def test_a_sum_among_its_parts_is_noticed(self):
        result = derive_change_series(wide(a=[1.0, 2], b=[2.0, 3], Total=[3.0, 5]))
        self.assertEqual(self.noted(result, "total_among_entities")["series"], "Total")
        self.assertNotIn("total_among_entities", self.codes(derive_change_series(wide(a=[1.0, 2], b=[2.0, 3], total=[3.0, 6]))))


@needs("pandas")
class Events(SeriesTest):
    def test_the_largest_are_kept_and_all_are_counted(self):
        data = wide(**{f"e{number}": [None, float(number), None] for number in range(1, 51)}, a=[1.0, 1, 1])
        result = derive_change_series(data, max_events=3)
        self.assertEqual(
            [(one["entity"], one["kind"]) for one in result.attrs["coverage_events"]],
            [("e49", "entered"), ("e50", "entered"), ("e50", "exited")],
        )
        self.assertEqual(result.attrs["coverage_event_count"], {"entered": 50, "exited": 50, "gap": 0, "resumed": 0})
        self.assertEqual(len(derive_change_series(data, max_events=None).attrs["coverage_events"]), 100)
        self.assertEqual(derive_change_series(data, max_events=0).attrs["coverage_events"], [])
        findings.take()
        note = self.noted(derive_change_series(data), "coverage_events")
        self.assertEqual((note["details"]["total"], note["details"]["listed"], len(note["details"]["events"])), (100, 40, 40))

    def test_a_finding_fits_the_limits_of_the_host(self):
        import json

        data = wide(**{f"{number}{'🏦' * 300}": [None, number / 7, None] for number in range(500)})
        note = self.noted(derive_change_series(data), "coverage_events")
        self.assertLess(len(json.dumps(note["details"], ensure_ascii=False).encode()), 16_384)

    def test_the_diagnostics_do_not_disturb_the_frame(self):
        result = derive_change_series(wide(a=[1.0, 2], b=[None, 5.0]))
        self.assertTrue((result == result).all(axis=None))
        self.assertEqual(pd.concat([result, result]).shape, (4, 6))
        self.assertEqual(result.copy().attrs, result.attrs)
        self.assertEqual(result.total_change.attrs, result.attrs)
        self.assertEqual((result.total_change - result.coverage_change).tolist(), [0, 1])
        result.copy().attrs["coverage_events"].append("mine")
        self.assertEqual(len(result.attrs["coverage_events"]), 1)

    def test_a_pickled_frame_can_be_read_without_a_kernel(self):
        import pickle

        result = derive_change_series(wide(a=[1.0, 2], b=[None, 5.0]))
        saved = pickle.dumps(result)
        self.assertNotIn(b"cellblock", saved)
        read = pickle.loads(saved)
        pd.testing.assert_frame_equal(read, result)
        self.assertEqual(read.attrs, result.attrs)

    @needs("pyarrow")
    def test_the_frame_survives_parquet_with_its_diagnostics(self):
        import io

        result = derive_change_series(wide(a=[1.0, 2], b=[None, float("inf")]))
        read = pd.read_parquet(io.BytesIO(result.to_parquet()))
        pd.testing.assert_frame_equal(read, result)
        self.assertEqual(read.attrs, result.attrs)


@needs("pandas")
class Refusals(SeriesTest):
    def test_errors_name_the_valid_choices(self):
        data = wide(a=[1.0, 2])
        rows = [{"date": DAYS[0], "e": "a", "v": 1, "w": 2}, {"date": DAYS[0], "e": "b", "v": 1, "w": 2}]
        shapes = (
            "a DataFrame, a Series with a time index, a list of dicts, a list of [time, value] pairs, a dict of columns, or a dict that "
            "holds one list of rows"
        )
        for kind, message, given, options in (
            (TypeError, f"data is an int; expected {shapes}", 5, {}),
            (TypeError, f"row 1 of data is an int; expected {shapes}", [{"a": 1}, 5], {}),
            (ValueError, "data has no column 'x'; it has 'date', 'a'", data, {"entity_col": "x"}),
            (ValueError, "data has no column 'x'; it has 'date', 'a'", data, {"time_col": "x"}),
            (
                ValueError,
                "data has no numeric column beside its time, only n (str); text must become numbers first",
                wide(n=["x"]),
                {},
            ),
            (ValueError, "data has several columns of numbers, 'v', 'w'; choose with value_col=", rows, {"entity_col": "e"}),
            (
                ValueError,
                "data may have long rows, by the text of 'e': name the columns with entity_col= and value_col=, or exclude the text if each numeric column is an entity",
                rows,
                {},
            ),
            (ValueError, "data has no column of numbers beside 'n'; choose with value_col=", wide(n=["x"]), {"entity_col": "n"}),
            (ValueError, "entity_col and value_col are both 'a'", data, {"entity_col": "a", "value_col": "a"}),
            (ValueError, "selected names 'x', which is not an entity of the data; there are 'a'", data, {"selected": ["a", "x"]}),
            (
                ValueError,
                "selected 0 is not a valid number of entities; expected 1 or more, or a list of entities",
                data,
                {"selected": 0},
            ),
            (TypeError, "selected is 'a'; expected a list of entities, or the number of largest ones", data, {"selected": "a"}),
            (TypeError, "selected is True; expected a list of entities, or the number of largest ones", data, {"selected": True}),
            (ValueError, "max_events -1 is not a valid number of events; expected 0 or more, or None", data, {"max_events": -1}),
            (
                ValueError,
                "duplicates 'keep' is not a valid policy; expected one of last, first, sum, mean, max, min, error",
                data,
                {"duplicates": "keep"},
            ),
            (TypeError, "duplicates is a dict; expected one of last, first, sum, mean, max, min, error", data, {"duplicates": {}}),
            (ValueError, 'errors \'ignore\' is neither "raise" nor "coerce"', data, {"errors": "ignore"}),
            (
                ValueError,
                "the sum of the period 2024-01-01 00:00:00+00:00 exceeds the maximum of a 64-bit float (1.8e308); scale the values first",
                wide(a=[1.5e308, 1], b=[1.5e308, 1]),
                {},
            ),
        ):
            with self.subTest(message):
                self.refused(kind, message, derive_change_series, given, **options)

    def test_two_samples_in_a_bucket_are_rejected_by_that_policy(self):
        rows = [
            {"t": "2024-01-01T10", "e": "a", "v": 1},
            {"t": "2024-01-01T11", "e": "a", "v": 1},
            {"t": "2024-01-02T00", "e": "a", "v": 1},
        ]
        self.refused(
            ValueError,
            "data has 2 samples of 'a' in the bucket 2024-01-01 00:00:00+00:00, the first of 1 conflict; choose one with duplicates=, of last, first, sum, mean, max, min",
            derive_change_series,
            rows,
            entity_col="e",
            freq="D",
            duplicates="error",
        )
        self.refused(
            ValueError,
            "data has 2 samples of 'v' in the bucket 2024-01-01 00:00:00+00:00, the first of 1 conflict; choose one with duplicates=, of last, first, sum, mean, max, min",
            derive_change_series,
            [{"t": one["t"], "v": one["v"]} for one in rows],
            freq="D",
            duplicates="error",
        )

    def test_a_row_without_an_entity_is_rejected_or_excluded(self):
        rows = [{"date": DAYS[0], "e": "a", "v": 1}, {"date": DAYS[0], "e": None, "v": 9}]
        message = "1 row of 2 without 'e', the first is row 1; repair them, or pass errors=\"coerce\" to exclude them"
        self.refused(ValueError, message, derive_change_series, rows)
        result = derive_change_series(rows, errors="coerce")
        self.assertEqual(result.total_value.tolist(), [1])
        self.assertEqual(self.noted(result, "unnamed_rows")["details"], {"rows": 1})

    def test_a_value_that_is_not_a_number_is_named(self):
        for value, shown in (("n/a", "'n/a'"), (True, "True"), ([1], "[1]")):
            with self.subTest(value):
                rows = [{"date": DAYS[0], "e": "a", "v": "1"}, {"date": DAYS[0], "e": "b", "v": value}]
                self.refused(
                    ValueError,
                    f"'v' of data holds no number in row 1: {shown} (1 such rows); make them numbers or None first",
                    derive_change_series,
                    rows,
                    entity_col="e",
                    value_col="v",
                )

    def test_more_cells_than_fit_into_memory_are_rejected(self):
        rows = pd.DataFrame({"t": range(1_000_000_000, 1_000_020_000), "e": [f"e{one}" for one in range(20_000)], "v": 1.0})
        self.refused(
            ValueError,
            "20,000 entities in 20,000 periods are more than 134,217,728 cells; choose a coarser freq=",
            derive_change_series,
            rows,
            entity_col="e",
            value_col="v",
        )

"""How times are found and read: every spelling becomes the same instant, and what is none is named."""

import importlib.util
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from tests.series import DAYS, SeriesTest, day, needs

if importlib.util.find_spec("pandas"):
    import numpy as np
    import pandas as pd

    from cellblock_kernel.timeseries import safe_merge_timeseries

TOKYO = timezone(timedelta(hours=9))


def read(values, **options):
    return safe_merge_timeseries(pd.DataFrame({"t": values, "v": range(len(values))}), time_col="t", **options)


@needs("pandas")
class Spellings(SeriesTest):
    def test_all_notations_give_the_same_instant(self):
        second = day(5)
        for value in (
            second,
            float(second),
            second * 10**3,
            second * 10**6,
            second * 10**9,
            str(second),
            str(second * 1000),
            Decimal(second),
            np.int64(second),
            "2024-01-05",
            "20240105",
            "2024-01-05T00:00:00Z",
            "2024-01-05 00:00:00.000000000+00:00",
            "2024-01-05T09:00:00+09:00",
            "2024-01-04T19:00-05:00",
            "  2024-01-05 ",
            "2024/01/05",
            "Jan 5, 2024",
            "5 January 2024",
            "Fri, 05 Jan 2024 00:00:00 GMT",
            date(2024, 1, 5),
            datetime(2024, 1, 5),
            datetime(2024, 1, 5, tzinfo=UTC),
            datetime(2024, 1, 5, 9, tzinfo=TOKYO),
            np.datetime64("2024-01-05"),
            pd.Timestamp("2024-01-05T09:00", tz="Asia/Tokyo"),
            pd.Period("2024-01-05", "D"),
        ):
            with self.subTest(repr(value)):
                merged = read([value])
                self.assertEqual(merged.index.tolist(), [pd.Timestamp("2024-01-05", tz="UTC")])
                self.assertEqual((merged.index.unit, merged.attrs["data_quality"]), ("us", []))

    def test_mixed_notations_in_one_column_give_the_same_instant(self):
        values = [
            day(1),
            "2024-01-02",
            date(2024, 1, 3),
            datetime(2024, 1, 4, 9, tzinfo=TOKYO),
            str(day(5)),
            np.datetime64("2024-01-06"),
        ]
        self.assertEqual([str(one)[:19] for one in read(values).index], [f"{one} 00:00:00" for one in DAYS])

    def test_columns_of_every_dtype_are_read(self):
        for values in (
            pd.to_datetime(DAYS[:2]),
            pd.to_datetime(DAYS[:2]).tz_localize("UTC").tz_convert("Asia/Tokyo"),
            pd.to_datetime(DAYS[:2]).as_unit("s"),
            pd.period_range(DAYS[0], periods=2),
            pd.Categorical(DAYS[:2]),
            pd.array([day(1), day(2)], dtype="Int64"),
            pd.array([day(1), day(2)], dtype="uint64"),
            pd.array([day(1), day(2)], dtype="float32").astype("float64") * 0 + [day(1), day(2)],
        ):
            with self.subTest(str(getattr(values, "dtype", ""))):
                self.assertEqual([str(one)[:10] for one in read(values).index], DAYS[:2])

    @needs("pyarrow")
    def test_columns_of_arrow_are_read(self):
        for dtype in ("timestamp[ns][pyarrow]", "timestamp[us, tz=Asia/Tokyo][pyarrow]", "date32[pyarrow]", "string[pyarrow]"):
            values = pd.Series(pd.to_datetime(DAYS[:2]))
            values = pd.Series(DAYS[:2], dtype=dtype) if dtype.startswith("string") else values
            values = pd.Series([one.date() for one in values], dtype=dtype) if dtype.startswith("date") else values
            values = values.dt.tz_localize("UTC").astype(dtype) if "tz" in dtype else values.astype(dtype)
            with self.subTest(dtype):
                self.assertEqual([str(one)[:10] for one in read(values).index], DAYS[:2])

    def test_nothing_is_lost_below_a_second(self):
        for value, expected, unit in (
            (day(1) + 0.25, "2024-01-01 00:00:00.250000+00:00", "us"),
            (day(1) * 1000 + 1, "2024-01-01 00:00:00.001000+00:00", "us"),
            (day(1) * 10**6 + 1, "2024-01-01 00:00:00.000001+00:00", "us"),
            (day(1) * 10**9 + 1, "2024-01-01 00:00:00.000000001+00:00", "ns"),
            ("2024-01-01T00:00:00.000000001Z", "2024-01-01 00:00:00.000000001+00:00", "ns"),
        ):
            merged = read([value])
            self.assertEqual((str(merged.index[0]), merged.index.unit), (expected, unit))

    def test_times_far_away_are_read(self):
        merged = read(["1600-01-01", "9999-12-31", "0001-01-01"], freq="D")
        self.assertEqual([str(one)[:10] for one in merged.index], ["0001-01-01", "1600-01-01", "9999-12-31"])

    def test_quarters_weeks_months_and_years_begin_with_their_first_day(self):
        for value, expected in (
            ("2024-Q2", "2024-04-01"),
            ("2024Q2", "2024-04-01"),
            ("2024-W05", "2024-01-29"),
            ("2024-02", "2024-02-01"),
            ("2024", DAYS[0]),
        ):
            self.assertEqual(str(read([value]).index[0])[:10], expected)

    def test_numbers_that_are_years_or_dates_are_read_as_such_and_noted(self):
        for values, expected, what in (
            ([2023, 2024], ["2023-01-01", DAYS[0]], "years"),
            ([20240101, 20240102], DAYS[:2], "dates (YYYYMMDD)"),
        ):
            merged = read(values)
            self.assertEqual([str(one)[:10] for one in merged.index], expected)
            self.assertEqual(
                self.noted(merged, "times_guessed")["message"],
                f"source 1: the numbers of 't' were read as {what}, not as seconds since 1970",
            )

    def test_epochs_of_several_units_are_each_read_by_their_size(self):
        merged = read([day(1), day(2) * 1000, day(3) * 10**9])
        self.assertEqual([str(one)[:10] for one in merged.index], DAYS[:3])
        self.assertEqual(self.noted(merged, "mixed_epoch_units")["details"], {"units": ["s", "ms", "ns"]})

    def test_the_first_moments_of_an_epoch_get_the_unit_of_their_neighbors(self):
        merged = read([0, 86_400_000, day(1) * 1000])
        self.assertEqual([str(one)[:10] for one in merged.index], ["1970-01-01", "1970-01-02", DAYS[0]])
        self.assertEqual([str(one)[:10] for one in read([-86_400, 0]).index], ["1969-12-31", "1970-01-01"])


@needs("pandas")
class Unreadable(SeriesTest):
    def test_the_first_bad_value_is_named_with_its_row(self):
        for value, shown in (
            ("soon", "'soon'"),
            ("", "''"),
            ("now", "'now'"),
            ("today", "'today'"),
            ("12:30", "'12:30'"),
            ("2024-13-01", "'2024-13-01'"),
            ("2024-W60", "'2024-W60'"),
            ("2024-01-05 10:00 EST", "'2024-01-05 10:00 EST'"),
            (None, "None"),
            (True, "True"),
            (float("nan"), "nan"),
            (float("inf"), "inf"),
            (10**30, str(10**30)),
            ([1], "[1]"),
            ("x" * 500, f"'{'x' * 78}…"),
        ):
            with self.subTest(shown):
                self.refused(
                    ValueError,
                    f"source 1 has no time in row 1 of 't': {shown}; repair the row, or pass errors=\"coerce\" to exclude such rows",
                    read,
                    pd.Series([DAYS[0], value], dtype=object),
                )

    def test_a_column_of_truth_values_holds_no_times(self):
        self.refused(
            ValueError,
            "source 1 has no time in row 0 of 't': True; repair the row, or pass errors=\"coerce\" to exclude such rows",
            read,
            [True, False],
        )

    def test_a_date_that_may_start_with_day_or_month_is_rejected(self):
        for value in ("03/04/2024", "3.4.24", "13-04-2024 10:00"):
            self.refused(
                ValueError,
                f"source 1 has {value!r} in row 0 of 't', which may begin with the day or the month; "
                'parse the column first with pd.to_datetime(…, format="%d/%m/%Y")',
                read,
                [value],
            )

    def test_bad_rows_are_excluded_with_a_note_on_request(self):
        merged = read([DAYS[0], "soon", None, DAYS[1]], errors="coerce")
        self.assertEqual(merged.v.tolist(), [0, 3])
        note = self.noted(merged, "unreadable_times")
        self.assertEqual((note["details"], note["series"]), ({"rows": 2, "first_row": 1}, "t"))
        nothing = read(["soon"], errors="coerce")
        self.assertEqual((len(nothing), list(nothing.columns)), (0, ["v"]))


@needs("pandas")
class Finding(SeriesTest):
    def found(self, table):
        return safe_merge_timeseries(table).index.name

    def test_the_time_is_found(self):
        for expected, columns in (
            ("timestamp", {"timestamp": [day(1)], "v": [1]}),
            ("Date", {"v": [1], "Date": DAYS[:1]}),
            ("ts", {"ts": [day(1)], "block_time": [day(1)]}),
            ("open_time", {"open_time": [day(1)], "v": [1]}),
            ("as_of", {"as_of": DAYS[:1], "volume_day": [5], "latency_ms": [20]}),
            ("date", {"date": DAYS[:1], "year": [2024], "month": [1], "hour": [0]}),
            ("year", {"year": [2024], "v": [1]}),
            ("when", {"when": pd.to_datetime(DAYS[:1]), "v": [1]}),
            ("when", {"when": DAYS[:1], "v": [1], "name": ["x"]}),
            ("date", {"date": DAYS[:1], "period": ["7d"]}),
            ("date", {"date": pd.to_datetime(DAYS[:1]), "seen": pd.to_datetime(DAYS[:1])}),
        ):
            with self.subTest(expected, columns=list(columns)):
                self.assertEqual(self.found(pd.DataFrame(columns)), expected)

    def test_an_index_is_found(self):
        self.assertEqual(self.found(pd.DataFrame({"date": DAYS[:1], "v": [1]}).set_index("date")), "date")
        self.assertEqual(self.found(pd.DataFrame({"v": [1]}, index=DAYS[:1])), "time")
        self.assertEqual(self.found(pd.DataFrame({"v": [1]}, index=pd.Index([day(1)], name="epoch"))), "epoch")
        named = pd.DataFrame({"v": [1]}, index=pd.DatetimeIndex(DAYS[:1], name="x"))
        self.assertEqual(safe_merge_timeseries(named, time_col="x").index.name, "x")

    def test_the_error_for_ambiguous_columns_names_the_candidates(self):
        for columns, candidates in (
            ({"date": DAYS[:1], "timestamp": [day(1)]}, "'date', 'timestamp'"),
            ({"open_time": [day(1)], "close_time": [day(1)]}, "'open_time', 'close_time'"),
            ({"a": pd.to_datetime(DAYS[:1]), "b": pd.to_datetime(DAYS[:1])}, "'a', 'b'"),
            ({"a": DAYS[:1], "b": DAYS[:1]}, "'a', 'b'"),
        ):
            message = f"source 1 has several columns that may be its time: {candidates}; choose with time_col="
            self.refused(ValueError, message, safe_merge_timeseries, pd.DataFrame(columns))
        self.refused(
            ValueError,
            "source 1 has no column of times among 'a', 'b'; name it with time_col=, or set a DatetimeIndex",
            safe_merge_timeseries,
            pd.DataFrame({"a": [1], "b": ["x"]}),
        )

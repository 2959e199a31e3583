"""Values of Parquet files, Arrow tables and queries that pandas would change: nested whole numbers, times of day, infinity."""

import datetime
import io
import unittest

from cellblock_kernel.library import findings, reading
from tests.needs import needs

_LARGE = 2**53 + 1


def plain(value):
    """Returns a value with lists in place of arrays of numpy."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def read(kind, table):
    import pyarrow
    import pyarrow.parquet

    file, notes = io.BytesIO(), []
    if kind == "parquet":
        pyarrow.parquet.write_table(table, file)
    else:
        with pyarrow.ipc.new_stream(file, table.schema) as stream:
            stream.write(table)
    return reading.read("t", kind, None, file.getvalue(), notes), notes


def queried(library, expression):
    """Returns the value of an expression, and the findings about it."""
    import duckdb

    from cellblock_kernel.library import sql_rows

    findings.take()
    column = sql_rows.frame(duckdb.sql(f"select {expression} as c"), library, False)["c"]
    values = column.astype(object).tolist() if library == "pandas" else column.to_list()
    # pandas has NaT for None.
    return None if str(values[0]) == "NaT" else plain(values[0]), findings.take()


@needs("pandas", "pyarrow")
class Tables(unittest.TestCase):
    def test_nested_whole_numbers_stay_whole_beside_nulls(self):
        import pyarrow

        number = pyarrow.int64()
        struct = pyarrow.struct([("a", number)])
        for kind, values in (
            (pyarrow.list_(number), [[1, None], [_LARGE], None]),
            (pyarrow.list_(number, 2), [[1, None], [_LARGE, 2], None]),
            (pyarrow.large_list(pyarrow.uint64()), [[1, None], [2**64 - 1], []]),
            (struct, [{"a": 1}, {"a": None}, {"a": _LARGE}]),
            (pyarrow.list_(struct), [[{"a": None}, {"a": _LARGE}], None, []]),
            (pyarrow.struct([("l", pyarrow.list_(number))]), [{"l": [_LARGE, None]}, {"l": None}, None]),
            (pyarrow.list_(pyarrow.list_(pyarrow.int8())), [[[1, None], None], [], None]),
        ):
            for file in ("parquet", "arrow"):
                with self.subTest(str(kind), file=file):
                    frame, notes = read(file, pyarrow.table({"n": [1, None, 3], "c": pyarrow.array(values, kind)}))
                    # Floats equal whole numbers: compare what is printed.
                    self.assertEqual(repr(plain(frame.c.tolist())), repr(values))
                    self.assertEqual(notes, [])
        maps = pyarrow.array([[("k", _LARGE), ("j", None)]], pyarrow.map_(pyarrow.string(), number))
        self.assertEqual(plain(read("parquet", pyarrow.table({"c": maps}))[0].c[0]), [["k", _LARGE], ["j", None]])

    def test_lists_without_nulls_stay_arrays_of_numbers_and_an_index_stays(self):
        import pandas as pd

        frame = pd.DataFrame({"k": [5, 6], "l": [[1, 2], [3]]}).set_index("k")
        file = io.BytesIO()
        frame.to_parquet(file)
        found = reading.read("t", "parquet", None, file.getvalue())
        self.assertEqual((str(found.l.iloc[0].dtype), found.index.tolist(), found.index.name), ("int64", [5, 6], "k"))

    def test_nested_times_and_the_end_of_a_day_are_read(self):
        import pyarrow

        day = 86400 * 10**6
        for kind, values, expected in (
            (pyarrow.list_(pyarrow.time64("ns")), [[86399999999999, None]], ["23:59:59.999999999", None]),
            (pyarrow.struct([("t", pyarrow.time64("ns"))]), [{"t": 1000}], {"t": datetime.time(microsecond=1)}),
            (pyarrow.time64("us"), [day], "24:00:00"),
            (pyarrow.list_(pyarrow.time64("us")), [[day, 1]], ["24:00:00", "00:00:00.000001"]),
        ):
            with self.subTest(str(kind)):
                frame, _ = read("arrow", pyarrow.table({"c": pyarrow.array(values, kind)}))
                self.assertEqual(plain(frame.c.tolist())[0], expected)

    def test_infinite_times_are_missing_and_named(self):
        import pyarrow

        for kind in ("us", "ms", "ns"):
            times = pyarrow.array([2**63 - 1, 1 - 2**63, 0], pyarrow.timestamp(kind))
            frame, notes = read("arrow", pyarrow.table({"until": times, "n": [1, 2, 3]}))
            self.assertEqual(frame.until.isna().tolist(), [True, True, False])
            self.assertEqual(notes, ["`until` has times or dates that are `infinity` or `-infinity`; they are read as missing"])
        frame, notes = read("parquet", pyarrow.table({"d": pyarrow.array([2**31 - 1, 0], pyarrow.date32())}))
        self.assertEqual((frame.d.isna().tolist(), len(notes)), ([True, False], 1))

    def test_infinite_times_of_a_connector_are_a_finding(self):
        import pyarrow

        from cellblock_kernel.library import fetched

        findings.take()
        table = pyarrow.table({"until": pyarrow.array([2**63 - 1, 0], pyarrow.timestamp("us"))})
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write(table)
        self.assertEqual(fetched.frame(sink.getvalue()).until.isna().tolist(), [True, False])
        self.assertEqual([it["code"] for it in findings.take()], ["infinity_to_missing"])


@needs("duckdb", "pandas", "polars", "pyarrow")
class Queries(unittest.TestCase):
    def test_nested_whole_numbers_stay_whole_beside_nulls(self):
        for expression, expected in (
            (f"[1, null, {_LARGE}]", [1, None, _LARGE]),
            (f"{{'a': {_LARGE}, 'b': null::int}}", {"a": _LARGE, "b": None}),
            (f"[{{'a': [{_LARGE}, null]}}, null]", [{"a": [_LARGE, None]}, None]),
            (f"map {{'k': {_LARGE}, 'n': null}}", {"k": _LARGE, "n": None}),
            (f"array_value({_LARGE}, null)", [_LARGE, None]),
        ):
            for library in ("pandas", "polars"):
                with self.subTest(expression, library=library):
                    self.assertEqual(repr(queried(library, expression)), repr((expected, [])))

    def test_times_of_day_never_fail_and_are_never_rounded_up(self):
        import duckdb
        import polars

        from cellblock_kernel.library import sql_rows

        for expression, pandas in (
            ("time_ns '23:59:59.9999999995'", "23:59:59.999999999"),
            ("time_ns '10:00:00.000001'", datetime.time(10, 0, 0, 1)),
            ("[time_ns '23:59:59.999999999', null]", ["23:59:59.999999999", None]),
            ("time '24:00:00'", "24:00:00"),
            ("{'t': time '24:00:00', 'i': 'infinity'::timestamp}", {"t": "24:00:00", "i": None}),
        ):
            with self.subTest(expression):
                self.assertEqual(queried("pandas", expression)[0], pandas)
                queried("polars", expression)
        series = sql_rows.frame(duckdb.sql("select time_ns '23:59:59.999999999' as c"), "polars", False)["c"]
        self.assertEqual((series.dtype, series.to_physical()[0]), (polars.Time, 86399999999999))
        self.assertEqual(queried("polars", "time '24:00:00'")[0], "24:00:00")

    def test_infinity_is_missing_and_named(self):
        for expression, expected in (
            ("timestamp 'infinity'", None),
            ("timestamp '-infinity'", None),
            ("timestamptz 'infinity'", None),
            ("timestamp_s '-infinity'", None),
            ("timestamp_ms 'infinity'", None),
            ("timestamp_ns '-infinity'", None),
            ("date 'infinity'", None),
            ("{'u': date '-infinity', 'n': [1, null]}", {"u": None, "n": [1, None]}),
        ):
            for library in ("pandas", "polars"):
                with self.subTest(expression, library=library):
                    value, named = queried(library, expression)
                    self.assertEqual((repr(value), [it["code"] for it in named]), (repr(expected), ["infinity_to_missing"]))
        value, named = queried("pandas", "timestamp '9999-12-31 23:59:59.999999'")
        self.assertEqual((str(value), named), ("9999-12-31 23:59:59.999999", []))


if __name__ == "__main__":
    unittest.main()

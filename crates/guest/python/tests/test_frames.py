"""Data frames of pandas, polars and pyarrow: what a reader of the Arrow stream gets."""

import importlib.util

from tests.driver import KernelTest, needs


def read(blob):
    import pyarrow.ipc

    table = pyarrow.ipc.open_stream(blob).read_all()
    table.validate(full=True)
    return table


class Frames(KernelTest):
    def table(self, code, **fields):
        ran = self.completes(code, **fields)
        output = ran.outputs[-1]
        self.assertEqual(output["type"], "dataframe", output)
        self.assertNotIn("note", output)
        return output, read(ran.blobs[-1][0])


@needs("pandas", "pyarrow")
class Pandas(Frames):
    def test_a_plain_frame_is_sent_whole(self):
        output, table = self.table("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': [1.5, None]})\ndf")
        self.assertEqual(
            output,
            {
                "type": "dataframe",
                "name": "df",
                "library": "pandas",
                "rows": 2,
                "columns": [{"name": "a", "dtype": "int64"}, {"name": "b", "dtype": "float64"}],
                "index": [],
                "truncated": False,
                "series": False,
            },
        )
        self.assertEqual(table.to_pydict(), {"a": [1, 2], "b": [1.5, None]})

    def test_an_index_becomes_columns(self):
        output, table = self.table("import pandas as pd\npd.DataFrame({'v': [1, 2]}, index=pd.Index(['x', 'y'], name='k'))")
        self.assertEqual((output["index"], table.to_pydict()), (["k"], {"k": ["x", "y"], "v": [1, 2]}))
        output, table = self.table("pd.DataFrame({'v': [1, 2]}, index=[5, 7])")
        self.assertEqual((output["index"], table.column_names), (["index"], ["index", "v"]))
        output, table = self.table("pd.DataFrame({'v': [1]}, index=pd.MultiIndex.from_tuples([('a', 1)], names=['p', None]))")
        self.assertEqual((output["index"], table.column_names), (["p", "level_1"], ["p", "level_1", "v"]))

    def test_names_are_made_unique_strings(self):
        _, table = self.table("import pandas as pd\ndf = pd.DataFrame([[1, 2, 3, 4]], columns=['a', 'a', 3, None])\ndf")
        self.assertEqual(table.column_names, ["a", "a.1", "3", "None"])
        _, table = self.table("pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([('sales', 'mean')]))")
        self.assertEqual(table.column_names, ["sales_mean"])

    def test_the_users_frame_is_not_changed(self):
        self.completes("import pandas as pd\ndf = pd.DataFrame({1: [[1], {'a': 1}]}, index=[3, 4])\nbefore = df.copy()\ndf")
        self.assertEqual(self.completes("df.equals(before) and list(df.columns) == [1]").values, [True])

    def test_a_series_is_one_column(self):
        output, table = self.table("import pandas as pd\npd.Series([1, 2], name='s')")
        self.assertEqual((output["series"], table.to_pydict()), (True, {"s": [1, 2]}))
        self.assertEqual(self.table("pd.Series([1])")[1].column_names, ["value"])

    def test_every_dtype_gives_something_sensible(self):
        for code, expected in (
            ("pd.Categorical(['a', None])", ["a", None]),
            ("pd.Categorical([3, 4])", [3, 4]),
            ("pd.Categorical([3, None])", [3, None]),
            ("pd.period_range('2024-01', periods=2, freq='M')", ["2024-01", "2024-02"]),
            ("pd.interval_range(0, 2)", ["(0, 1]", "(1, 2]"]),
            ("pd.arrays.SparseArray([0, 5])", [0, 5]),
            ("np.array([1 + 2j, 0])", ["(1+2j)", "0j"]),
            ("pd.array([1, None], dtype='Int64')", [1, None]),
            ("pd.array([True, None], dtype='boolean')", [True, None]),
            ("pd.array(['a', None], dtype='string')", ["a", None]),
            ("np.array([1, 2], dtype='float16')", [1.0, 2.0]),
            ("[None, None]", [None, None]),
            ("[1, 'a']", ["1", "a"]),
            ("[{'b': 1, 'a': [2]}, None]", ['{"a": [2], "b": 1}', None]),
            ("[[1, 2], [3]]", [[1, 2], [3]]),
            ("[np.array([1, 2]), 'x']", ["[1, 2]", "x"]),
            ("[2**70, 1]", [str(2**70), "1"]),
            ("pd.Series(['\\udc80', 'ok'], dtype=object)", ["?", "ok"]),
            ("[(1, 2), 'x']", ["[1, 2]", "x"]),
        ):
            with self.subTest(code):
                _, table = self.table(f"import pandas as pd, numpy as np\npd.DataFrame({{'c': {code}}}, dtype=None)")
                self.assertEqual(table.column("c").to_pylist(), expected)

    def test_times_keep_their_types(self):
        _, table = self.table(
            "import pandas as pd\npd.DataFrame({'t': pd.to_datetime(['2024-01-02']).tz_localize('Europe/Berlin'), "
            "'d': pd.to_timedelta(['1h'])})"
        )
        self.assertRegex(str(table.schema.field("t").type), r"^timestamp\[\w+, tz=Europe/Berlin\]$")
        self.assertRegex(str(table.schema.field("d").type), r"^duration\[\w+\]$")

    def test_empty_frames_are_fine(self):
        self.assertEqual(self.table("import pandas as pd\npd.DataFrame()")[0]["rows"], 0)
        self.assertEqual(self.table("pd.DataFrame({'a': []})")[1].column_names, ["a"])
        self.assertEqual(self.table("pd.DataFrame(index=[1, 2])")[0]["rows"], 2)

    def test_batches_are_bounded(self):
        ran = self.completes("import pandas as pd\npd.DataFrame({'a': range(200_000)})")
        import pyarrow.ipc

        sizes = [batch.num_rows for batch in pyarrow.ipc.open_stream(ran.blobs[0][0])]
        self.assertEqual((max(sizes), sum(sizes)), (65_536, 200_000))

    def test_scalars_and_indexes_are_values_not_tables(self):
        ran = self.completes(
            "import pandas as pd, numpy as np\ndisplay(np.float64(1.5), np.bool_(True), np.nan, pd.NaT, pd.Index([1]))"
        )
        self.assertEqual(ran.values, [1.5, True, "nan", "NaT", "Index([1], dtype='int64')"])
        self.assertEqual(ran.outputs[0]["python_type"], "numpy.float64")


@needs("pandas", "pyarrow")
class Cut(Frames):
    configuration = {"limits": {"output_bytes": 20_000, "rows_preview": 3}}

    def test_a_large_frame_is_its_first_and_last_rows(self):
        for library in ("pandas as pd", "polars as pd"):
            if importlib.util.find_spec(library.split()[0]) is None:
                continue
            with self.subTest(library):
                output, table = self.table(f"import {library}\npd.DataFrame({{'a': range(1_000_000)}})")
                self.assertEqual((output["rows"], output["truncated"]), (1_000_000, True))
                self.assertEqual((output["head_rows"], output["tail_rows"]), (3, 3))
                self.assertEqual(table.to_pydict(), {"a": [0, 1, 2, 999_997, 999_998, 999_999]})

    def test_rows_too_large_for_a_preview_are_left_out(self):
        ran = self.completes("import pandas as pd\npd.DataFrame({'a': ['x' * 100_000] * 10})")
        self.assertEqual((ran.outputs[0]["head_rows"], ran.outputs[0]["truncated"], ran.blobs[0]), (0, True, []))

    def test_a_huge_frame_is_never_serialized(self):
        code = (
            "import pandas as pd, numpy as np, resource\ndf = pd.DataFrame(np.zeros((5_000_000, 10)))\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\ndisplay(df)\n"
            "(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 100_000"
        )
        self.assertEqual(self.completes(code).values[-1], True)


@needs("polars", "pyarrow")
class Polars(Frames):
    def test_frames_and_series_are_sent(self):
        output, table = self.table("import polars as pl\npl.DataFrame({'a': [1, 2], 's': ['x', None]})")
        self.assertEqual((output["library"], [c["dtype"] for c in output["columns"]]), ("polars", ["Int64", "String"]))
        self.assertEqual(table.to_pydict(), {"a": [1, 2], "s": ["x", None]})
        self.assertEqual([str(kind) for kind in table.schema.types], ["int64", "large_string"])
        output, table = self.table("pl.Series('s', [1])")
        self.assertEqual((output["series"], table.to_pydict()), (True, {"s": [1]}))

    def test_odd_types_become_plain_ones(self):
        _, table = self.table(
            "import polars as pl\npl.DataFrame([pl.Series('c', ['a', 'b'], dtype=pl.Categorical), "
            "pl.Series('o', [object, None], dtype=pl.Object), pl.Series('l', [['x'], []]), pl.Series('n', [None, None])])"
        )
        self.assertEqual(table.to_pydict()["c"], ["a", "b"])
        self.assertEqual(table.to_pydict()["o"], ["<class 'object'>", None])
        self.assertEqual(table.to_pydict()["l"], [["x"], []])

    def test_a_lazy_frame_is_text(self):
        self.assertEqual(self.completes("import polars as pl\npl.LazyFrame({'a': [1]})").outputs[0]["type"], "rich")

    def test_polars_own_writer_gives_the_same(self):
        self.completes("from cellblock_kernel.outputs import arrow\narrow.library = lambda: None")
        _, table = self.table("import polars as pl\npl.DataFrame({'s': ['x', None], 'n': range(2)})")
        self.assertEqual(table.to_pydict(), {"s": ["x", None], "n": [0, 1]})


@needs("pyarrow")
class Arrow(Frames):
    def test_tables_and_batches_are_sent(self):
        output, table = self.table("import pyarrow as pa\npa.table({'a': [1, 2], 'd': pa.array(['x', 'x']).dictionary_encode()})")
        self.assertEqual((output["library"], table.to_pydict()), ("pyarrow", {"a": [1, 2], "d": ["x", "x"]}))
        self.assertEqual(str(table.schema.field("d").type), "string")
        output, table = self.table("pa.record_batch({'a': [1]})")
        self.assertEqual(table.to_pydict(), {"a": [1]})

    def test_repeated_names_are_made_unique(self):
        _, table = self.table("import pyarrow as pa\npa.Table.from_arrays([pa.array([1]), pa.array([2])], names=['a', 'a'])")
        self.assertEqual(table.column_names, ["a", "a.1"])


@needs("pandas", "pyarrow")
class Columns(Frames):
    """Columns whose types Arrow or its readers lack do not spoil the others."""

    def test_ids_are_their_text(self):
        text = "00000000-0000-0000-0000-000000000001"
        _, table = self.table(
            "import uuid, pandas as pd\none = uuid.UUID(int=1)\npd.DataFrame({'u': [one, None], 'l': [[one], []], 'x': [1, 2]})"
        )
        self.assertEqual(table.to_pydict(), {"u": [text, None], "l": [f'["{text}"]', "[]"], "x": [1, 2]})
        _, table = self.table("import pyarrow as pa\npa.table({'u': pa.array([one.bytes, None], pa.uuid())})")
        self.assertEqual(table.to_pydict(), {"u": [text, None]})

    def test_a_time_keeps_its_zone(self):
        _, table = self.table(
            "import datetime as dt, pandas as pd\nzone = dt.timezone(dt.timedelta(hours=2))\n"
            "pd.DataFrame({'z': [dt.time(1, 2, tzinfo=zone), None], 'l': [[dt.time(1, tzinfo=dt.timezone.utc)], []],"
            " 't': [dt.time(1), None]})"
        )
        self.assertEqual(table["z"].to_pylist(), ["01:02:00+02:00", None])
        self.assertEqual(table["l"].to_pylist(), ['["01:00:00+00:00"]', "[]"])
        self.assertEqual(str(table["t"].type), "time64[us]")

    def test_items_of_odd_types_are_plain(self):
        _, table = self.table(
            "import pyarrow as pa\npa.table({\n"
            " 'd': pa.array([['a']], pa.list_(pa.dictionary(pa.int8(), pa.string()))),\n"
            " 'h': pa.array([{'a': 1.5}], pa.struct({'a': pa.float16()})),\n"
            " 'v': pa.array([[1, 2]], pa.list_view(pa.int8())),\n"
            " 'm': pa.array([[('k', 'x')]], pa.map_(pa.string(), pa.string_view())),\n"
            " 'n': pa.array([[None]], pa.list_(pa.null())),\n"
            " 'b': pa.array([1], pa.bool8())})"
        )
        self.assertEqual(
            table.to_pydict(), {"d": [["a"]], "h": [{"a": 1.5}], "v": [[1, 2]], "m": [[("k", "x")]], "n": [[None]], "b": [True]}
        )
        self.assertNotIn("dictionary", str(table.schema))

    @needs("polars")
    def test_polars_parts_of_128_bits_and_of_categories_are_text(self):
        output, table = self.table(
            "import polars as pl\npl.DataFrame({'l': [[2**100]], 's': [{'k': 2**100, 'c': 'a'}], 'a': [[2**100]], 'x': [1]}, schema={\n"
            " 'l': pl.List(pl.Int128), 's': pl.Struct({'k': pl.Int128, 'c': pl.Categorical}), 'a': pl.Array(pl.Int128, 1), 'x': pl.Int64})"
        )
        number = str(2**100)
        self.assertEqual(table.to_pydict(), {"l": [[number]], "s": [{"k": number, "c": "a"}], "a": [[number]], "x": [1]})
        self.assertEqual(output["columns"][0]["dtype"], "List(Int128)")

    def test_a_frame_without_columns_has_its_index(self):
        for code, index in (("pd.DataFrame()", []), ("pd.DataFrame(index=range(2))", [0, 1])):
            output, table = self.table(f"import pandas as pd\n{code}")
            self.assertEqual((output["rows"], output["index"], table.to_pydict()), (len(index), ["index"], {"index": index}))

    def test_warnings_about_our_own_conversions_are_not_the_users(self):
        warn = "import warnings, cellblock_kernel.{0} as own\nwarnings.warn_explicit('m', UserWarning, own.__file__, 1)"
        self.assertEqual(self.completes(warn.format("outputs.frame")).stderr, "")
        # The cell is run from there: its `stacklevel` may be too high.
        self.assertEqual(self.completes(warn.format("cell.execution")).stderr, "UserWarning: m\n")


@needs("pyarrow")
class Streams(Frames):
    """Values of any library that hand out Arrow streams."""

    WRAPPER = (
        "import pyarrow as pa\nclass Table:\n    def __init__(self, table): self.table = table\n"
        "    def __arrow_c_stream__(self, requested_schema=None): return self.table.__arrow_c_stream__(requested_schema)\n"
    )

    def test_a_stream_is_a_table(self):
        output, table = self.table(self.WRAPPER + "Table(pa.table({'a': [1, 2]}))")
        self.assertEqual((output["rows"], output["truncated"], table.to_pydict()), (2, False, {"a": [1, 2]}))

    def test_a_stream_of_values_without_names_is_text(self):
        (output,) = self.completes(self.WRAPPER + "Table(pa.chunked_array([[1]]))").outputs
        self.assertEqual((output["value"], "note" in output), ("<__main__.Table object>", False))

    def test_a_stream_that_can_be_read_only_once_is_left_to_the_user(self):
        self.completes("import pyarrow as pa\nreader = pa.RecordBatchReader.from_stream(pa.table({'a': [1]}))")
        (output,) = self.completes("reader").outputs
        self.assertEqual(output["value"], "<pyarrow.lib.RecordBatchReader object>")
        self.assertEqual(self.completes("reader.read_all().num_rows").values, [1])

    @needs("duckdb")
    def test_a_relation_is_a_table_however_it_is_shown(self):
        self.completes("import duckdb\nrows = duckdb.sql('select i, i * 2 as d from range(200) t(i)')")
        for ask in (
            lambda: self.run_cell("rows"),
            lambda: self.run_cell("display(rows)"),
            lambda: self.kernel.ask("get", name="rows"),
        ):
            ran = ask()
            (output,) = ran.outputs
            self.assertEqual((output["type"], output["rows"], output["truncated"]), ("dataframe", 200, False))
            self.assertEqual(read(ran.blobs[0][0])["d"].to_pylist(), list(range(0, 400, 2)))
        self.assertEqual(self.completes("len(rows), duckdb.sql('select 1').fetchall()").values, ["(200, [(1,)])"])

    @needs("duckdb")
    def test_types_of_duckdb(self):
        _, table = self.table(
            'import duckdb\nduckdb.sql("select \'00000000-0000-0000-0000-000000000001\'::uuid u, \'10:00:00+02\'::timetz as \\"a \\"\\"z\\", "\n'
            "\"[1::hugeint] h, interval 1 month m, union_value(a := 1) v, 'a'::enum('a', 'b') e\")"
        )
        self.assertEqual(table["u"].to_pylist(), ["00000000-0000-0000-0000-000000000001"])
        self.assertEqual(table['a "z'].to_pylist(), ["10:00:00+02"])
        self.assertEqual((table["e"].to_pylist(), str(table["e"].type)), (["a"], "string"))


@needs("pyarrow", "duckdb")
class LongStreams(Frames):
    configuration = {"limits": {"output_bytes": 100_000}}

    def test_a_long_relation_has_its_ends_and_the_number_of_all_rows(self):
        output, table = self.table("import duckdb\nduckdb.sql('select i from range(1000000) t(i)')")
        self.assertEqual((output["rows"], output["truncated"], output["head_rows"], output["tail_rows"]), (1_000_000, True, 50, 50))
        self.assertEqual(table["i"].to_pylist(), [*range(50), *range(999_950, 1_000_000)])

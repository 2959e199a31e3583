"""Datasets: every frame that is accepted is the same after its table was written as Parquet and read again."""

import datetime
import decimal
import io
import random
import unittest
from importlib import import_module

from tests.driver import KernelTest
from tests.needs import needs

FRAMES = 400


def round_trip(frame):
    """Returns the frame that is loaded after this one was published."""
    import pyarrow.parquet as parquet

    from cellblock_kernel.datasets import frames

    encoded = frames.encode(frame)
    # The host writes plain columns, with the form as an annotation.
    table = encoded.table.replace_schema_metadata({b"cellblock.frame": encoded.about["frame"].encode()})
    names = [column["name"] for column in encoded.about["columns"]]
    assert names == table.column_names and len(set(names)) == len(names), names
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd")
    return frames.decode(file.getvalue())


def rejected(frame):
    """Returns why a frame is not published."""
    from cellblock_kernel.datasets import frames
    from cellblock_kernel.datasets.form import NotPublishable

    try:
        frames.encode(frame)
    except NotPublishable as error:
        return str(error)
    raise AssertionError("the frame was accepted")


@needs("pandas", "pyarrow")
class PandasFrames(unittest.TestCase):
    def setUp(self):
        self.pd = import_module("pandas")
        self.np = import_module("numpy")

    def same(self, frame):
        from pandas.testing import assert_frame_equal

        before = frame.copy(deep=True)
        loaded = round_trip(frame)
        assert_frame_equal(loaded, frame, check_freq=True, check_flags=True, check_column_type=True)
        assert_frame_equal(frame, before)
        self.assertEqual(loaded.attrs, frame.attrs)
        self.assertEqual(loaded.columns.names, frame.columns.names)
        for number in range(frame.shape[1]):
            if frame.iloc[:, number].dtype == object:
                pairs = zip(loaded.iloc[:, number], frame.iloc[:, number])
                for one, other in pairs:
                    self.assertIs(type(one), type(other))
        return loaded

    def columns(self, pick, rows):
        """Makes one column of each kind, with values by chance."""
        pd, np = self.pd, self.np
        whole = [pick.randint(-(2**63), 2**63 - 1) for _ in range(rows)]
        floats = [pick.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), 1e-308, pick.random()]) for _ in range(rows)]
        texts = [pick.choice(["", "a", "ü€😀", 'quo"te', "line\nline", "None", "nan"]) for _ in range(rows)]
        gaps = [pick.random() < 0.3 for _ in range(rows)]
        stamps = pd.to_datetime([pick.randint(0, 2**60) for _ in range(rows)])

        def with_gaps(values, missing):
            return [missing if gap else value for value, gap in zip(values, gaps)]

        unit = pick.choice(["s", "ms", "us", "ns"])
        seconds = np.array([pick.randint(0, 2**31) for _ in range(rows)], dtype="int64")
        return {
            "int64": np.array(whole, dtype="int64"),
            "uint8": np.array([value % 256 for value in whole], dtype="uint8"),
            "uint64": np.array([value % 2**64 for value in whole], dtype="uint64"),
            "float64": np.array(floats),
            "float32": np.array(floats, dtype="float32"),
            "float16": np.array([value % 100 for value in whole], dtype="float16"),
            "bool": np.array(gaps),
            "times": seconds.astype(f"datetime64[{unit}]"),
            "zoned": stamps.as_unit("us").tz_localize("UTC").tz_convert(pick.choice(["UTC", "Europe/Berlin", "Asia/Kolkata"])),
            "durations": seconds.astype(f"timedelta64[{unit}]"),
            "texts": pd.Series(texts, dtype=object),
            "texts_none": pd.Series(with_gaps(texts, None), dtype=object),
            "texts_nan": pd.Series(with_gaps(texts, float("nan")), dtype=object),
            "strings": pd.array(with_gaps(texts, pd.NA), dtype="string"),
            "Int64": pd.array(with_gaps(whole, pd.NA), dtype="Int64"),
            "Float64": pd.array(with_gaps([1.5] * rows, pd.NA), dtype="Float64"),
            "boolean": pd.array(with_gaps([True] * rows, pd.NA), dtype="boolean"),
            "category": pd.Categorical(with_gaps(texts, None), categories=[*sorted(set(texts)), "unused"], ordered=True),
            "category_int": pd.Categorical(with_gaps([value % 5 for value in whole], None), categories=[4, 3, 2, 1, 0]),
            "period": pd.PeriodIndex(stamps.to_period(pick.choice(["M", "Q", "W", "Y", "D"]))),
            "decimal": pd.Series([decimal.Decimal(value % 10**9).scaleb(-2) for value in whole], dtype=object),
            "date": pd.Series(with_gaps([datetime.date(2000 + value % 50, 1, 31) for value in whole], None), dtype=object),
            "bytes": pd.Series(with_gaps([text.encode() for text in texts], None), dtype=object),
            "lists": pd.Series(with_gaps([[value % 7, None, "x"] for value in whole], None), dtype=object),
            "dicts": pd.Series([{"a": value % 7, "b": {"c": [1.5]}} for value in whole], dtype=object),
            "mixed": pd.Series([pick.choice([1, "a", 2.5, True, None]) for _ in range(rows)], dtype=object),
            "arrays": pd.Series([np.arange(value % 4, dtype="float32") for value in whole], dtype=object),
            "none": pd.Series([None] * rows, dtype=object),
        }

    def index(self, pick, rows):
        pd = self.pd
        days = pd.date_range("2020-01-31", periods=rows, freq=pick.choice(["D", "ME", "h"]), name=pick.choice([None, "day"]))
        pairs = pd.MultiIndex.from_arrays(
            [pd.DatetimeIndex(days.values), [pick.choice("ab") for _ in range(rows)]], names=["day", None]
        )
        return pick.choice(
            [
                pd.RangeIndex(rows),
                pd.RangeIndex(5, 5 + 2 * rows, 2, name="n"),
                pd.Index([pick.choice("abc") for _ in range(rows)], name="letter"),
                pd.Index([pick.choice([1, "a"]) for _ in range(rows)], dtype=object),
                pd.Index(range(rows), dtype="int64", name=7),
                pd.CategoricalIndex([pick.choice("ab") for _ in range(rows)], categories=["b", "a"], name=("a", 1)),
                days,
                days.tz_localize("Europe/Berlin", ambiguous=True, nonexistent="shift_forward"),
                pairs,
            ]
        )

    def labels(self, pick, count):
        pd = self.pd
        return pick.choice(
            [
                pd.Index([f"c{number}" for number in range(count)]),
                pd.Index(["same"] * count, name="label"),
                pd.RangeIndex(count),
                pd.Index([number * 3 for number in range(count)], dtype="int64"),
                pd.Index([number if number % 2 else str(number) for number in range(count)], dtype=object),
                pd.date_range("2020-01-01", periods=count, freq="MS", name="month"),
                pd.MultiIndex.from_tuples([("a", number) for number in range(count)], names=["kind", None]),
            ]
        )

    def test_random_frames_are_the_same_after_loading_or_are_rejected_by_name(self):
        from cellblock_kernel.datasets.form import NotPublishable

        accepted = 0
        for seed in range(FRAMES):
            with self.subTest(seed=seed):
                pick = random.Random(seed)
                rows = pick.choice([0, 1, 2, 17])
                kinds = self.columns(pick, rows)
                chosen = pick.sample(sorted(kinds), pick.randint(1, 8))
                index = self.index(pick, rows)
                frame = self.pd.concat([self.pd.Series(kinds[name]).set_axis(index) for name in chosen], axis=1)
                frame.columns = self.labels(pick, len(chosen))
                if pick.random() < 0.2:
                    frame.attrs = {"source": "survey", "years": [2020, 2021]}
                try:
                    self.same(frame)
                    accepted += 1
                except NotPublishable as error:
                    # What a frame of chance may be rejected for.
                    self.assertRegex(str(error), "index level|missing values of several kinds")
        self.assertGreater(accepted, FRAMES * 9 // 10)

    def test_what_would_change_is_rejected_with_its_column_and_a_repair(self):
        pd, np = self.pd, self.np
        cases = [
            (pd.Series([None, float("nan")], dtype=object), "several kinds (None, nan)", "where"),
            (pd.Series([1 + 2j]), "complex128", ".real"),
            (pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1])), "interval", "astype(str)"),
            (pd.Series(pd.arrays.SparseArray([0, 1])), "Sparse", "to_dense"),
            (pd.Series([{1: 2}], dtype=object), "row 0", "dict"),
            (pd.Series([(1, 2)], dtype=object), "row 0", "tuple"),
            (pd.Series(["a", object()], dtype=object), "row 1", "object"),
            (pd.Series([[float("nan")]], dtype=object), "row 0", "list"),
            (pd.Series([np.zeros((2, 2))], dtype=object), "one-dimensional", "lists"),
            (pd.Series([pd.Timestamp("2020-01-01")], dtype=object), "row 0", "Timestamp"),
        ]
        for column, cause, repair in cases:
            with self.subTest(cause=cause):
                message = rejected(column.to_frame("x"))
                self.assertIn("column 'x'", message)
                self.assertIn(cause, message)
                self.assertIn(repair, message)
        many = pd.Series(pd.Categorical([f"name {number}" for number in range(100_000)])).to_frame("x")
        self.assertIn("the categories of column 'x'", rejected(many))
        attrs = pd.DataFrame({"x": [1]})
        attrs.attrs["f"] = print
        self.assertIn(".attrs", rejected(attrs))
        self.assertIn("no columns", rejected(pd.DataFrame()))

    def test_other_values_are_a_type_error_that_says_how_to_convert_them(self):
        from cellblock_kernel.datasets import frames

        class Special(self.pd.DataFrame):
            pass

        for value, hint in [(self.pd.Series([1]), ".to_frame()"), ([1], "convert"), (None, "convert"), (Special(), "convert")]:
            with self.assertRaisesRegex(TypeError, "publish_dataset expects a data frame, not") as caught:
                frames.encode(value)
            self.assertIn(hint, str(caught.exception))

    def test_the_table_has_readable_columns_for_other_readers(self):
        from cellblock_kernel.datasets import frames

        frame = self.pd.DataFrame({"kind": self.pd.Categorical(["b", "a"])}, index=self.pd.Index([5, 6], name="id"))
        encoded = frames.encode(frame)
        self.assertEqual(encoded.table.to_pydict(), {"id": [5, 6], "kind": ["b", "a"]})
        self.assertEqual(encoded.about["index"], ["id"])
        self.assertEqual([column["dtype"] for column in encoded.about["columns"]], ["int64", "category"])


@needs("polars", "pyarrow")
class PolarsFrames(unittest.TestCase):
    def test_a_frame_is_the_same_after_loading(self):
        pl = import_module("polars")
        frame = pl.DataFrame(
            {
                "i": pl.Series([1, None, 3], dtype=pl.Int8),
                "s": ["a", None, "ü"],
                "f": [1.5, float("nan"), None],
                "t": pl.Series([datetime.datetime(2020, 1, 1), None, None], dtype=pl.Datetime("ms", "Europe/Berlin")),
                "d": [datetime.date(2020, 1, 1), None, None],
                "time": [datetime.time(1, 2, 3), None, None],
                "duration": [datetime.timedelta(seconds=1), None, None],
                "list": [[1, 2], [], None],
                "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
                "decimal": pl.Series([decimal.Decimal("1.20"), None, None], dtype=pl.Decimal(10, 2)),
                "category": pl.Series(["x", "y", None], dtype=pl.Categorical),
                "enum": pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x", "unused"])),
                "binary": [b"a", b"", None],
                "bool": [True, None, False],
                "null": [None, None, None],
            }
        )
        loaded = round_trip(frame)
        self.assertEqual(loaded.schema, frame.schema)
        pl.testing.assert_frame_equal(loaded, frame) if hasattr(pl, "testing") else None
        self.assertTrue(loaded.equals(frame, null_equal=True))

    def test_types_that_would_change_are_rejected_by_name(self):
        pl = import_module("polars")
        self.assertIn("'x' has the type Object", rejected(pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})))


@needs("pyarrow")
class PyarrowTables(unittest.TestCase):
    def test_a_table_is_the_same_after_loading(self):
        pa = import_module("pyarrow")
        table = pa.table(
            {
                "a": pa.array([1, None], pa.int16()),
                "category": pa.array(["x", "y"]).dictionary_encode(),
                "half": pa.array([1.5, None], pa.float16()),
                "null": pa.nulls(2),
                "duration": pa.array([1, 2], pa.duration("s")),
                "list": pa.array([[1], None], pa.large_list(pa.int8())),
                "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
            },
            metadata={"source": "survey"},
        )
        loaded = round_trip(table)
        self.assertTrue(loaded.equals(table))
        self.assertEqual(loaded.schema.metadata, table.schema.metadata)


class Functions(KernelTest):
    configuration = {"prelude": ["datasets"]}

    def test_arguments_are_checked_as_the_documentation_says(self):
        cases = [
            ("load_dataset()", "TypeError"),
            ("load_dataset('a', 'b')", "TypeError"),
            ("load_dataset(5)", "TypeError"),
            ("load_dataset('')", "ValueError"),
            ("read_dataset(' ')", "ValueError"),
            ("publish_dataset([1], 'x')", "TypeError"),
            ("publish_dataset([1], 5)", "TypeError"),
            ("publish_dataset([1], 'x', title=5)", "TypeError"),
            ("publish_dataset([1], 'x', tags=[5])", "TypeError"),
        ]
        for code, kind in cases:
            with self.subTest(code=code):
                self.assertEqual(self.raises(code)["exception"], kind)

    def test_an_error_of_the_host_is_a_key_error_with_its_message(self):
        def refuse(params, blobs):
            return ({"error": {"code": "not_loaded", "message": f"look at 'it' first: read_dataset(\"{params['slug']}\")"}},)

        self.kernel.calls["dataset.load"] = refuse
        execution = self.completes(
            "import cellblock\ntry:\n    load_dataset('gdp')\nexcept KeyError as error:\n"
            "    print(type(error) is cellblock.LoadDatasetError, error)"
        )
        self.assertEqual(execution.stdout, "True look at 'it' first: read_dataset(\"gdp\")\n")

    def test_a_published_frame_has_its_variable_and_its_texts(self):
        received = []

        def publish(params, blobs):
            received.append((params, blobs))
            return ({"value": {"slug": params["slug"]}},)

        self.kernel.calls["dataset.publish"] = publish
        execution = self.completes(
            "import pyarrow\ngdp = pyarrow.table({'x': [1, 2]})\npublish_dataset(gdp, 'gdp', title='GDP', notes='one')['slug']\n"
        )
        self.assertEqual(execution.values, ["gdp"])
        ((params, blobs),) = received
        self.assertEqual((params["variable"], params["title"], params["notes"], params["rows"]), ("gdp", "GDP", "one", 2))
        self.assertTrue(blobs[0])


if __name__ == "__main__":
    unittest.main()

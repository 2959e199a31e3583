"""`sql` over the session's data frames."""

import time
import unittest

from tests.driver import KernelTest
from tests.needs import needs

FRAME = "import pandas as pd\ndf = pd.DataFrame({'city': ['Kyiv', 'Lima', 'Kyiv'], 'n': [1, 2, 3]})"

# Sums of columns at the limits of their types, compared with Python's.
SUMS = """
import datetime, decimal, random
import pandas as pd, polars as pl

def differences(seed):
    pick = random.Random(seed)
    rows = pick.randint(1, 20)
    kinds = {
        'i': ('int64', [pick.choice([pick.randint(-9, 9), pick.randint(2**53, 2**63 - 1), -2**63]) for _ in range(rows)]),
        'u': ('uint64', [pick.choice([pick.randint(0, 9), pick.randint(2**53, 2**64 - 1)]) for _ in range(rows)]),
        'd': (object, [decimal.Decimal(pick.randint(-10**17, 10**17)).scaleb(-2) for _ in range(rows)]),
    }
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=pick.randint(-99999, 99999)) for _ in range(rows)]
    found = []
    frame = pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (kind, values) in kinds.items()} | {'t': dates})
    for table in (frame, pl.DataFrame({name: values for name, (_, values) in kinds.items() if name != 'u'} | {'t': dates})):
        for name, (_, values) in kinds.items():
            if name in table.columns:
                total = sql(f'select sum({name}) as s from table_', table_=table)['s'][0]
                if decimal.Decimal(str(total)) != sum(values) or isinstance(total, float):
                    found.append((name, total, sum(values)))
        ends = sql('select min(t) as least, max(t) as most from table_', table_=table)
        least, most = (ends[name][0] for name in ('least', 'most'))
        if table is frame:
            least, most = least.date(), most.date()
        if (least, most) != (min(dates), max(dates)):
            found.append((least, most))
    return found
"""


@needs("duckdb", "pandas", "polars")
class Sql(KernelTest):
    configuration = {"prelude": ["notebook"]}

    def setUp(self):
        super().setUp()
        self.completes(FRAME)

    def stdout(self, code):
        return self.completes(code).stdout

    def fails(self, query, *texts):
        """Runs a statement that must fail, and looks for texts in its error."""
        error = self.raises(f"sql({query!r})")
        for text in texts:
            self.assertIn(text, error["message"])
        return error

    def test_variables_are_tables(self):
        code = "print(sql('select city, sum(n)::int as n from df group by all order by n').to_dict('list'))"
        self.assertEqual(self.stdout(code), "{'city': ['Lima', 'Kyiv'], 'n': [2, 4]}\n")
        self.completes("df = df[df.n > 1]\nother = pd.DataFrame({'city': ['Kyiv'], 'country': ['UA']})")
        code = "print(sql('from DF join other using (city) select n, country').values.tolist())"
        self.assertEqual(self.stdout(code), "[[3, 'UA']]\n")

    def test_values_are_parameters_and_frames_are_tables(self):
        code = "def f():\n  t = df[df.n > 1]\n  return sql('select city from t where n < $most', t=t, most=3)\nprint(f().city.tolist())"
        self.assertEqual(self.stdout(code), "['Lima']\n")

    def test_text_is_never_spliced(self):
        code = 'print(len(sql("select * from df where city = $city", city="x\' or 1=1 --")))'
        self.assertEqual(self.stdout(code), "0\n")

    def test_frames_of_polars_give_polars(self):
        code = "import polars as pl\nlazy = pl.LazyFrame({'n': [1, 2]})\nother = pl.DataFrame({'n': [2]})\n"
        code += "print(type(sql('select * from lazy join other using (n)')).__module__.split('.')[0], type(sql('select * from other, df')).__name__)"
        self.assertIn("polars DataFrame", self.completes(code).stdout)

    def test_sums_are_those_of_python(self):
        self.completes(SUMS)
        for seed in range(20):
            self.assertEqual(self.stdout(f"print(differences({seed}))"), "[]\n")

    def test_a_decimal_that_is_a_parameter_is_exact(self):
        code = "from decimal import Decimal\nprint(repr(sql('select $x as v', x=Decimal('12345678901234567.89')).v[0]))"
        self.assertEqual(self.stdout(code), "Decimal('12345678901234567.89')\n")

    def test_every_type_leaves_with_its_value(self):
        self.completes("import polars\np = polars.DataFrame({'x': [1]})")
        for column, pandas, polars in (
            ("1 + 2", "int32 3", "Int32 3"),
            ("sum(x)", "int64 1", "Int64 1"),
            ("9223372036854775807::hugeint + 1", "object Decimal('9223372036854775808')", "Int128 9223372036854775808"),
            ("5::uhugeint", "int64 5", "Int64 5"),
            (f"{2**128 - 1}::uhugeint", f"object Decimal('{2**128 - 1}')", f"UInt128 {2**128 - 1}"),
            (f"{10**45}::bignum", f"object Decimal('{10**45}')", f"String '{10**45}'"),
            ("1.5", "float64 1.5", "Float64 1.5"),
            ("1.5::decimal(9, 2)", "object Decimal('1.50')", "Decimal(precision=9, scale=2) Decimal('1.50')"),
            ("null::bigint", "Int64 <NA>", "Int64 None"),
            ("null::boolean", "boolean <NA>", "Boolean None"),
            ("null::double", "float64 nan", "Float64 None"),
            ("date '2024-02-29'", "datetime64[ms] Timestamp('2024-02-29 00:00:00')", "Date datetime.date(2024, 2, 29)"),
            ("time '10:00'", "object datetime.time(10, 0)", "Time datetime.time(10, 0)"),
            ("'10:00:00+02'::timetz", "str '10:00:00+02'", "String '10:00:00+02'"),
            (
                "interval 36 hour",
                "timedelta64[us] Timedelta('1 days 12:00:00')",
                "Duration(time_unit='us') datetime.timedelta(days=1, seconds=43200)",
            ),
            (
                "interval '1 month 2 days'",
                "object <DateOffset: days=2, months=1, nanoseconds=0>",
                "Struct({'months': Int64, 'days': Int64, 'nanoseconds': Int64}) {'months': 1, 'days': 2, 'nanoseconds': 0}",
            ),
            ("'101'::bit", "str '101'", "String '101'"),
            (
                "[1::uhugeint, null]",
                "object array([Decimal('1'), None], dtype=object)",
                "List(Decimal(precision=38, scale=0)) [Decimal('1'), None]",
            ),
            ("{'a': [5::bignum]}", "object {'a': array(['5'], dtype=object)}", "Struct({'a': List(String)}) {'a': ['5']}"),
            ("map {'k': 1}", "object {'k': 1}", "Map(String, Int32) {'k': 1}"),
            ("union_value(n := 3)", "str '3'", "String '3'"),
        ):
            with self.subTest(column):
                query = f"select {column} as c from p"
                code = f"one_, two_ = sql({query!r}, p=p.to_pandas()), sql({query!r})\nprint(one_.c.dtype, repr(one_.c.astype(object)[0]))\nprint(repr(two_['c'].dtype), repr(two_['c'].to_list()[0]))"
                ran = self.completes(code)
                self.assertEqual((ran.stdout, ran.stderr), (f"{pandas}\n{polars}\n", ""))

    def test_infinite_times_are_missing_and_a_finding_names_the_column(self):
        ran = self.completes(
            "r = sql(\"select timestamp 'infinity' as until, 1 as n\")\nprint(r.until.isna().tolist(), r.n.tolist())"
        )
        self.assertEqual(ran.stdout, "[True] [1]\n")
        self.assertEqual(
            ran.done["findings"],
            [
                {
                    "code": "infinity_to_missing",
                    "message": "`until` has times or dates that are `infinity` or `-infinity`; they are read as missing",
                    "series": "until",
                }
            ],
        )
        self.assertNotIn("findings", self.completes("r = sql('select 1 as n')").done)

    def test_columns_that_duckdb_cannot_read_matter_only_if_they_are_read(self):
        self.completes(
            "odd = pd.DataFrame({'size': pd.cut(pd.Series([1, 2, 3]), 2), 'v': [1, 2, 3], 'z': [1j, 2j, 3j]})\n"
            "odd['month'] = pd.period_range('2024-01', periods=3, freq='M')\n"
            "import polars as pl\npods = pl.DataFrame({'big': pl.Series([2**100], dtype=pl.Int128), 'v': [7]})\nlazy = pods.lazy()"
        )
        for query, found in (
            ("select v from odd order by v desc", [3, 2, 1]),
            ("select count(*) from odd", [3]),
            ("select odd.v from odd join df on odd.v = df.n where df.city = 'Lima'", [2]),
            ("with t as (select * from odd) select max(v) from t", [3]),
            ("select v + $more from odd limit 1", [11]),
            ("select v from pods", [7]),
            ("select count(*) from lazy", [1]),
        ):
            with self.subTest(query):
                values = ", more=10" if "$more" in query else ""
                self.assertEqual(
                    self.stdout(f"r = sql({query!r}{values})\nprint([int(one) for one in r[r.columns[0]]])"), f"{found}\n"
                )
        remedy = "which DuckDB does not support; make it text or numbers first"
        for query, text in (
            (
                "select size from odd",
                f"the column 'size' of odd has the type category of interval[float64, right], {remedy}, for example with odd['size'].astype(str)",
            ),
            ("from odd", "the column 'size' of odd"),
            ("select v from odd where month > '2024-01'", "the column 'month' of odd has the type period[M]"),
            ("select date_trunc('year', month) from odd", "the column 'month' of odd"),
            ("select sum(z) from odd", "the column 'z' of odd has the type complex128"),
            ("select * from pods", f"the column 'big' of pods has the type Int128, {remedy}, or select"),
            ("select v from lazy where big > 3", "the column 'big' of lazy"),
        ):
            with self.subTest(query):
                self.assertEqual(self.fails(query, text)["exception"], "TypeError")

    def test_a_missing_table_is_explained(self):
        self.fails("select * from sales", "sales", "Tables (variables that hold data frames): df (city, n)")
        self.fails("select town from df", "town", "df (city, n)")

    def test_statements_that_would_leave_nothing_are_rejected(self):
        for query in (
            "create table t as select 1",
            "insert into df values ('a', 1)",
            "attach 'x.db'",
            "install httpfs",
            "load httpfs",
        ):
            with self.subTest(query):
                self.fails(query, "is not supported, because no table outlives the call")
        self.fails("select 1; select 2", "expected one statement, found 2")
        self.fails(" ", "expected one statement, found 0")
        self.fails("selec 1", "syntax error")

    def test_files_of_the_workspace_are_read_and_written(self):
        code = "sql(\"copy df to 'out.parquet'\")\nprint(sql(\"select sum(n)::int as n from 'out.parquet'\").n[0])"
        self.assertEqual(self.stdout(code), "6\n")

    def test_a_pivot_is_one_statement(self):
        self.assertIn("Kyiv", self.stdout("print(sql('pivot df on city using sum(n)').columns.tolist())"))

    def test_no_thread_stays(self):
        code = (
            "import os\nbefore = os.listdir('/proc/self/task')\nsql('select count(*) from range(1000000) t(a) join df on a = n')\n"
        )
        self.assertEqual(self.stdout(code + "print(os.listdir('/proc/self/task') == before)"), "True\n")

    def test_an_interrupt_ends_a_query(self):
        self.kernel.begin("sql('select count(*) from range(1000000000000) t(a) where a % 7 = 3')")
        time.sleep(1)
        self.kernel.interrupt()
        ran = self.kernel.finish()
        self.assertEqual(ran.done["outcome"], "interrupted", ran)
        self.assertEqual(self.stdout("print(len(sql('from df')))"), "3\n")

    def test_the_tables_of_a_query_count_as_read(self):
        ran = self.completes("q = 'select * from ' + 'd' + 'f'\nx = sql(q)", report_names=True)
        self.assertEqual(ran.done["names"]["read"], ["df", "q"])
        ran = self.completes("y = 1", report_names=True)
        self.assertEqual(ran.done["names"]["read"], [])


@needs("duckdb")
class OtherSessions(KernelTest):
    configuration = {"prelude": ["analysis"]}

    def test_others_do_not_have_it(self):
        self.assertEqual(self.raises("sql('select 1')")["exception"], "NameError")


if __name__ == "__main__":
    unittest.main()

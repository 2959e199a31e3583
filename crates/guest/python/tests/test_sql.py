"""`sql` over the session's data frames."""

import time
import unittest

from tests.driver import KernelTest
from tests.needs import needs

FRAME = "import pandas as pd\ndf = pd.DataFrame({'city': ['Kyiv', 'Lima', 'Kyiv'], 'n': [1, 2, 3]})"


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

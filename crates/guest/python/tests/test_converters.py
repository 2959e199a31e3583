"""Converters, which code registers for classes of its own, and `print` of tables and charts."""

from tests.driver import KernelTest
from tests.needs import needs

MONEY = "import cellblock\nclass Money:\n    def __init__(self, n): self.n = n\n    def __repr__(self): return 'MONEY'\nclass Euro(Money): pass\n"


def types(ran):
    return [output["type"] for output in ran.outputs]


class Converters(KernelTest):
    def finding(self, ran):
        (one,) = ran.done["findings"]
        return one["code"], one["message"]

    def test_values_of_a_class_and_its_subclasses_are_shown_as_their_converter_says(self):
        ran = self.run_cell(MONEY + "cellblock.register(Money, lambda it: it.n)\ndisplay(Money(3))\nEuro(4)")
        self.assertEqual(ran.values, [3, 4])

    def test_the_nearest_class_counts(self):
        code = (
            MONEY + "cellblock.register(Money, lambda it: 'm')\ncellblock.register(Euro, lambda it: it)\ndisplay(Money(3))\nEuro(4)"
        )
        self.assertEqual(self.run_cell(code).values, ["m", "m"])

    def test_a_class_can_be_named_before_it_is_imported(self):
        self.completes("import cellblock\ncellblock.register('fractions.Fraction', str)\ncellblock.register('a.B', str)")
        self.assertEqual(self.run_cell("from fractions import Fraction\nFraction(1, 3)").values, ["1/3"])
        self.completes("cellblock.register('fractions.Fraction', None)")
        self.assertEqual(self.run_cell("Fraction(1, 3)").values, ["Fraction(1, 3)"])

    def test_a_converter_may_replace_how_builtin_values_are_shown(self):
        self.assertEqual(self.run_cell("import cellblock\ncellblock.register(int, hex)\n255").values, ["0xff"])

    def test_converters_follow_each_other_and_never_in_a_circle(self):
        code = (
            MONEY + "class B: pass\ncellblock.register(Money, lambda it: B())\ncellblock.register(B, lambda it: Euro(1))\nMoney(1)"
        )
        self.assertEqual(self.run_cell(code).values, ["MONEY"])

    def test_a_converter_that_raises_leaves_the_usual_display_and_a_finding(self):
        ran = self.completes(MONEY + "cellblock.register(Money, lambda it: it.missing)\nMoney(1)")
        self.assertEqual(ran.values, ["MONEY"])
        self.assertEqual(
            self.finding(ran),
            (
                "output_not_converted",
                "the converter of Money failed, so the value is shown as usual: AttributeError: 'Money' object has no attribute "
                "'missing'",
            ),
        )
        code = "class Bad(Exception):\n    def __str__(self): raise ValueError\ndef fail(it): raise Bad\ncellblock.register(Money, fail)\nMoney(1)"
        self.assertEqual(self.finding(self.completes(code))[1][-5:], ": Bad")

    def test_what_is_not_a_class_or_not_a_function_is_rejected(self):
        for code in ("cellblock.register('Money', str)", "cellblock.register(3, str)", "cellblock.register(int, 3)"):
            with self.subTest(code):
                self.assertEqual(self.raises("import cellblock\n" + code)["exception"], "TypeError")

    def test_a_reset_drops_converters(self):
        self.completes("import cellblock\ncellblock.register(int, hex)")
        self.kernel.ask("reset")
        self.assertEqual(self.run_cell("255").values, [255])

    def test_setup_code_registers_for_all_cells(self):
        self.kernel.ask("setup", name="setup.py", code="import cellblock\ncellblock.register(int, hex)")
        self.assertEqual(self.run_cell("255").values, ["0xff"])

    def test_the_module_offers_nothing_else(self):
        self.completes("import cellblock\nfrom cellblock import *\nissubclass(RateLimitError, ConnectorError), register")
        self.assertEqual(self.raises("cellblock.missing")["message"], "module 'cellblock' has no attribute 'missing'")

    @needs("pandas")
    def test_a_value_can_be_shown_as_a_table(self):
        code = MONEY + "import pandas as pd\ncellblock.register(Money, lambda it: pd.DataFrame({'n': [it.n]}))\nm = Money(1)\nm"
        (output,) = self.run_cell(code).outputs
        self.assertEqual((output["type"], output["name"], output["rows"]), ("dataframe", "m", 1))


class OfImage(KernelTest):
    configuration = {"outputs": {"fractions.Fraction": "builtins:str", "decimal.Decimal": "missing_module:convert"}}

    def test_converters_of_the_image_apply_until_code_registers_another(self):
        self.completes("from fractions import Fraction\nhalf = Fraction(1, 2)")
        self.assertEqual(self.run_cell("half").values, ["1/2"])
        self.assertEqual(self.run_cell("import cellblock\ncellblock.register(Fraction, float)\nhalf").values, [0.5])
        self.kernel.ask("reset")
        self.assertEqual(self.run_cell("from fractions import Fraction\nFraction(1, 3)").values, ["1/3"])

    def test_a_converter_that_cannot_be_imported_is_a_finding(self):
        ran = self.completes("from decimal import Decimal\nDecimal('1.5')")
        self.assertEqual(ran.values, ["Decimal('1.5')"])
        self.assertIn("No module named 'missing_module'", ran.done["findings"][0]["message"])


class Print(KernelTest):
    configuration = {"prelude": ["notebook"]}

    def test_text_is_printed_as_text(self):
        ran = self.run_cell("import sys\nprint(1, 'a', sep='-')\nprint([1], file=sys.stderr)\nprint('x', end='')\nprint(None)")
        self.assertEqual((ran.stdout, ran.stderr, ran.outputs), ("1-a\nxNone\n", "[1]\n", []))
        self.assertEqual(self.kernel.ask("variables").done["variables"], [])

    @needs("pandas", "pyarrow")
    def test_exactly_one_table_is_shown(self):
        self.completes("import pandas as pd\ndf = pd.DataFrame({'a': [1]})")
        ran = self.run_cell("print('before')\nprint(df)\nprint(df, flush=True)")
        self.assertEqual((types(ran), ran.stdout), (["dataframe", "dataframe"], "before\n"))
        code = (
            "import io, sys, contextlib\nprint('rows', df)\nprint(df.a)\nprint(df, file=sys.stderr)\n"
            "with contextlib.redirect_stdout(io.StringIO()) as text: print(df)\nassert 'a' in text.getvalue()"
        )
        ran = self.completes(code)
        self.assertEqual((ran.outputs, "rows" in ran.stdout), ([], True))

    @needs("matplotlib")
    def test_a_chart_is_shown(self):
        ran = self.run_cell("from matplotlib.figure import Figure\nf = Figure()\nf.add_subplot().plot([1, 2])\nprint(f)")
        self.assertEqual((types(ran), ran.stdout), (["figure"], ""))


class PlainPrint(KernelTest):
    @needs("pandas", "pyarrow")
    def test_elsewhere_a_table_is_printed_as_text(self):
        ran = self.run_cell("import pandas as pd\nprint(pd.DataFrame({'a': [1]}))")
        self.assertEqual((ran.outputs, ran.stdout), ([], "   a\n0  1\n"))

"""A check of code: the same errors as a run would have, and nothing is changed."""

from tests.driver import KernelTest
from tests.test_connectors import BUNDLES


class Check(KernelTest):
    configuration = {"guard": "strict", "connectors": BUNDLES, "rescue": "on"}

    def check(self, code, **fields):
        return self.kernel.ask("check", **{"code": code, "name": "cell.py", "mode": "exec", **fields})

    def test_code_that_would_run_is_not_run(self):
        for code, mode in (("x = 1\nprint(x)\n1 / 0", "exec"), ("print(1)", "eval"), ("%%time\ny = !ls\n" * 0 + "await z", "exec")):
            with self.subTest(code):
                ran = self.check(code, mode=mode)
                self.assertEqual((ran.done["outcome"], ran.outputs, ran.stdout), ("completed", [], ""))
        self.assertEqual(self.kernel.ask("variables").done["variables"], [])

    def test_a_syntax_error_is_that_of_a_run(self):
        for code in ("x = 1\ny = (", "return 1", "nonlocal x"):
            with self.subTest(code):
                checked, ran = self.check(code, line=5), self.run_cell(code, line=5)
                self.assertEqual(checked.done["outcome"], "raised")
                self.assertEqual(checked.done["error"], ran.done["error"])
                self.assertEqual(checked.outputs, ran.outputs)
        self.assertEqual(self.check("x = 1", mode="eval").done["error"]["type"], "SyntaxError")

    def test_rules_that_code_breaks_are_reported(self):
        checked = self.check("x = 1\neval('1')", line=10)
        self.assertEqual((checked.done["outcome"], checked.outputs), ("rejected", []))
        self.assertEqual([(one["rule"], one["line"]) for one in checked.done["rejections"]], [("strict.builtin", 11)])

    def test_functions_that_a_connector_lacks_are_reported(self):
        checked = self.check("a = weather.get_forecast(city='x')\nb = weather.forecast\nc = weather['nope']\nhelp(weather)")
        self.assertEqual(
            [(one["rule"], one["line"], one["message"]) for one in checked.done["rejections"]],
            [
                ("connector", 2, "the connector weather has no function 'forecast'; it has get_forecast, book"),
                ("connector", 3, "the connector weather has no function 'nope'; it has get_forecast, book"),
            ],
        )
        for code in (
            "gone.anything()",
            "weather = 1\nweather.forecast",
            "def f(weather): return weather.forecast",
            "weather.__doc__",
        ):
            with self.subTest(code):
                self.assertEqual(self.check(code).done["outcome"], "completed")

    def test_the_next_cell_is_as_without_a_check(self):
        self.run_cell("x = 1")
        changes = self.kernel.hear_of_standby()["changes"]
        self.check("x = 2")
        self.check("x = (")
        self.assertEqual(self.run_cell("x").values, [1])
        self.assertEqual(self.kernel.hear_of_standby()["changes"], changes + 1)

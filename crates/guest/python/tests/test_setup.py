"""Setup code: what it binds is there in every namespace and is no variable of a user."""

from tests.driver import KernelTest
from tests.needs import needs


class Setup(KernelTest):
    def set_up(self, code, **fields):
        return self.kernel.ask("setup", name="setup.py", code=code, **fields).done

    def names(self):
        return [one["name"] for one in self.kernel.ask("variables").done["variables"]]

    def test_names_of_setup_code_are_bound_but_are_not_variables(self):
        self.assertEqual(self.set_up("import math\nRATE = 2\ndef tax(x): return x * RATE")["outcome"], "completed")
        ran = self.run_cell("y = tax(math.floor(1.5))\nRATE = RATE + 1\ny", report_names=True)
        self.assertEqual((ran.values, ran.done["names"]["read"]), ([2], ["RATE", "y"]))
        self.assertEqual(self.names(), ["RATE", "y"])

    def test_setup_code_shows_nothing(self):
        self.set_up("1 + 1")
        self.assertEqual(self.run_cell("'_' in globals()").values, [False])

    def test_a_reset_drops_the_names_until_the_code_runs_again(self):
        self.set_up("shared = [1]")
        self.run_cell("shared.append(2)\nmine = 1")
        self.kernel.ask("reset")
        self.assertEqual(self.run_cell("'shared' in globals()").values, [False])
        self.set_up("shared = [1]")
        self.assertEqual(self.run_cell("shared").values, ["[1]"])
        self.assertEqual(self.names(), [])

    def test_a_failure_is_reported_with_its_line_and_keeps_what_was_bound(self):
        done = self.set_up("a = 1\nb = 1 / 0\nc = 2")
        self.assertEqual((done["outcome"], done["error"]["line"]), ("raised", 2))
        self.assertEqual(done["error"]["type"], "ZeroDivisionError")
        self.assertEqual(self.run_cell("a, 'c' in globals()").values, ["(1, False)"])
        self.assertEqual(self.names(), [])
        self.assertEqual(self.set_up("x =")["error"]["type"], "SyntaxError")

    def test_a_traceback_through_setup_code_shows_its_line(self):
        self.set_up("def check(x):\n    raise ValueError('negative')")
        self.assertIn('File "setup.py", line 2, in check', self.raises("check(1)")["traceback"])

    @needs("matplotlib")
    def test_a_figure_of_setup_code_is_not_shown_by_the_first_cell(self):
        self.set_up("import matplotlib.pyplot as plt\nplt.plot([1, 2])")
        self.assertEqual([one["type"] for one in self.run_cell("1").outputs], ["primitive"])


class Guarded(KernelTest):
    configuration = {"guard": "strict"}

    def test_the_guard_checks_setup_code_unless_the_operator_gives_it(self):
        code = "def total(text): return eval(text)"
        refused = self.kernel.ask("setup", name="setup.py", code=code, guarded=True).done
        self.assertEqual((refused["outcome"], refused["rejections"][0]["line"]), ("rejected", 1))
        self.assertEqual(self.kernel.ask("setup", name="setup.py", code=code, guarded=False).done["outcome"], "completed")
        self.assertEqual(self.run_cell("total('1 + 2')").values, [3])
        self.assertEqual(self.run_cell("eval('1')").done["outcome"], "rejected")
        self.assertEqual(self.raises("globals()['__builtins__']['eval']('1')")["exception"], "RuntimeError")


class Standby(KernelTest):
    configuration = {"rescue": "on"}

    def test_setup_code_counts_as_a_change_of_the_state(self):
        self.kernel.ask("setup", name="setup.py", code="x = 1")
        self.run_cell("y = 1")
        self.assertEqual(self.kernel.hear_of_standby()["changes"], 3)

"""Names that a cell reports for lineage."""

from tests.driver import KernelTest


class Names(KernelTest):
    def names(self, code, **fields):
        return self.run_cell(code, report_names=True, **fields).done["names"]

    def test_names_are_reported_only_if_asked_for(self):
        self.assertNotIn("names", self.completes("x = 1").done)

    def test_every_way_to_bind_is_seen(self):
        for code, bound in (
            ("a = 1", ["a"]),
            ("a, *b = 1, 2", ["a", "b"]),
            ("(a := 1)", ["a"]),
            ("for a in [1]: b = a", ["a", "b"]),
            ("with open('/dev/null') as a: pass", ["a"]),
            ("def f():\n  global a\n  a = 1\nf()", ["a"]),
            ("globals()['a'] = 1", ["a"]),
            ("exec('a = 1')", ["a"]),
            ("from math import pi as a", ["a"]),
            ("a: int = 1", ["a"]),
            ("class a: pass", ["a"]),
            ("import asyncio\na = await asyncio.sleep(0, 1)", ["a"]),
            ("match [1]:\n  case [a]: pass", ["a"]),
        ):
            with self.subTest(code):
                self.completes("globals().pop('a', 0); globals().pop('b', 0); None")
                self.assertEqual(self.names(code)["assigned"], bound)

    def test_functions_modules_and_private_names_are_not_variables(self):
        names = self.names("import math\ndef f(): pass\n_x = 1\nx = lambda: 0\ny = [k for k in 'ab']")
        self.assertEqual(names["assigned"], ["y"])

    def test_what_stays_in_a_function_or_class_is_not_bound(self):
        self.assertEqual(self.names("def f():\n  a = 1\n  return a\nclass C:\n  b = 2\nr = f()")["assigned"], ["C", "r"])

    def test_a_name_that_is_bound_to_the_same_object_is_bound(self):
        self.completes("a = 'text'")
        names = self.names("a = a\nnew = 1")
        self.assertEqual((names["assigned"], names["created"]), (["a", "new"], ["new"]))

    def test_reads_go_through_functions_and_classes_of_earlier_cells(self):
        self.completes("a, b, c, d = 1, 2, 3, 4\ndef inner(): return b\ndef f(): return a + inner()")
        self.completes("class K:\n  def m(self): return c")
        self.assertEqual(self.names("x = f()")["read"], ["a", "b"])
        self.assertEqual(self.names("x = K().m()")["read"], ["K", "c"])
        self.assertEqual(self.names("x = [i + d for i in range(2)]")["read"], ["d"])
        self.assertEqual(self.names("d")["read"], ["d"])

    def test_changes_in_place_are_seen(self):
        for code in ("a['x'] = 1", "a['x']['y'] = 1", "a.update(x=1)", "del a['x']", "a.setdefault('x', []).append(1)"):
            with self.subTest(code):
                self.completes("class D(dict): pass\na = D(x={})")
                names = self.names(code)
                self.assertEqual((names["changed"], names["assigned"]), (["a"], []))
        self.completes("a = [1]")
        self.assertEqual(self.names("a += [2]")["assigned"], ["a"])

    def test_deleted_names_are_reported(self):
        self.completes("a = 1")
        self.assertEqual(self.names("del a")["deleted"], ["a"])

    def test_a_cell_that_stores_nothing_reports_changes_only(self):
        self.completes("a = [1]")
        names = self.names("b = 1\na = [2]", store=False)
        self.assertEqual((names["assigned"], names["deleted"]), ([], []))
        self.assertEqual(self.names("a.append(3)", store=False)["changed"], ["a"])

    def test_a_failed_cell_reports_what_it_did(self):
        self.assertEqual(self.names("a = 1\n1 / 0")["assigned"], ["a"])
        self.assertNotIn("names", self.run_cell("a =", report_names=True).done)
        self.assertNotIn("names", self.completes("a").done)

    def test_a_namespace_that_is_no_namespace_is_survived(self):
        code = (
            "g = globals()\ng[1] = 2\ng['a b'] = 3\ng['x' * 300] = 4\nimport builtins\nbuiltins.isinstance = builtins.sorted = None"
        )
        self.assertEqual(self.names(code)["assigned"], ["g"])
        self.assertEqual(self.names("a = 1")["assigned"], ["a"])

    def test_expressions_report_too(self):
        self.completes("a = [1]")
        self.assertEqual(self.names("a.append(2)", mode="eval")["changed"], ["a"])

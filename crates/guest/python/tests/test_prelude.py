"""Preludes: names that are there without an import, and libraries that are imported when a cell first uses their name."""

from tests.driver import KernelTest, needs


class Waiting(KernelTest):
    def setUp(self):
        super().setUp()
        self.kernel.send({"type": "configure", "prelude": ["analysis"]})

    def test_standard_names_are_bound_at_once(self):
        self.assertEqual(self.completes("datetime(2024, 1, 2).year, timedelta, timezone").done["outcome"], "completed")

    @needs("numpy")
    def test_a_library_is_imported_by_the_cell_that_uses_its_name(self):
        self.assertEqual(self.completes("import sys\n'numpy' in sys.modules").values, [False])
        self.assertEqual(self.completes("int(np.arange(4).sum())").values, [6])
        self.assertEqual(self.completes("'numpy' in sys.modules").values, [True])

    @needs("numpy")
    def test_a_name_in_executed_text_is_found(self):
        self.assertEqual(self.completes("exec('total = int(np.arange(4).sum())')\ntotal").values, [6])

    @needs("numpy")
    def test_a_name_in_text_from_elsewhere_is_found(self):
        self.completes("open('code.txt', 'w').write('int(np.arange(4).sum())');")
        self.assertEqual(self.completes("eval(open('code.txt').read())").values, [6])

    @needs("numpy")
    def test_a_name_that_only_a_magic_uses_is_found(self):
        self.assertIn("per loop", self.completes("%timeit -n 1 -r 1 np.arange(3)").stdout)

    @needs("numpy")
    def test_a_function_of_an_earlier_cell_finds_it(self):
        self.completes("def f():\n    return int(np.ones(3).sum())")
        self.assertEqual(self.completes("f()").values, [3])

    def test_a_name_that_the_cell_binds_is_left_alone(self):
        self.assertEqual(self.completes("import json as np\nnp.dumps(1)").values, ["1"])
        self.assertEqual(self.completes("pd = 5").outputs, [])
        self.assertEqual(self.completes("pd").values, [5])

"""E2B's client of Python in debug mode, which knows no addresses but those of this machine."""

import unittest

from e2b_code_interpreter import Sandbox


class Debug(unittest.TestCase):
    def test_one_sandbox_is_shared(self):
        first, second = Sandbox.create(), Sandbox.create()
        first.run_code("x = 20")
        self.assertEqual(second.run_code("x + 1").text, "21")
        first.files.write("a.txt", "one")
        self.assertEqual(second.commands.run("cat a.txt").stdout, "one")
        self.assertIn("javascript", [it.language for it in first.list_code_contexts()])
        self.assertTrue(first.is_running())


if __name__ == "__main__":
    unittest.main()

"""What a template does before, and a kernel after, the fork."""

import json
import subprocess
import sys
import unittest

from tests.driver import PACKAGE, needs

FORKS = """
import json, os, random, sys, tempfile
from cellblock_kernel import after_fork, warm
failed = warm.warm(sys.argv[1:])
import multiprocessing
drawn = []
for _ in range(2):
    read, write = os.pipe()
    if not os.fork():
        after_fork.refresh()
        row = [random.random(), next(tempfile._get_candidate_names()), multiprocessing.current_process().authkey.hex()]
        if "numpy" in sys.modules:
            row.append(sys.modules["numpy"].random.rand())
        os.write(write, json.dumps(row).encode())
        os._exit(0)
    drawn.append(json.loads(os.read(read, 4096)))
print(json.dumps([failed, drawn, os.environ["MPLBACKEND"]]))
"""


class Template(unittest.TestCase):
    def fork(self, *modules):
        done = subprocess.run(
            [sys.executable, "-c", FORKS, *modules], cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=120
        )
        return json.loads(done.stdout)

    def test_every_random_state_differs_between_siblings(self):
        failed, (first, second), _ = self.fork("random")
        self.assertEqual(failed, [])
        for one, other in zip(first, second, strict=True):
            self.assertNotEqual(one, other)

    def test_a_missing_module_is_named_with_its_reason(self):
        failed, _, backend = self.fork("no_such_module")
        self.assertEqual(failed, ["no_such_module: ModuleNotFoundError: No module named 'no_such_module'"])
        self.assertEqual(backend, "agg")

    @needs("numpy", "pandas", "matplotlib", "altair")
    def test_libraries_are_warmed_without_starting_threads(self):
        failed, (first, second), _ = self.fork("numpy", "pandas", "matplotlib.pyplot", "altair")
        self.assertEqual(failed, [])
        self.assertNotEqual(first[3], second[3])

"""Tests of immortal objects, in processes of their own."""

import json
import subprocess
import sys
import unittest

from tests.driver import PACKAGE
from tests.needs import needs_python

# What is there before is immortal, what is made later is not.
_PROGRAM = """
import gc, json, os, sys, weakref
from cellblock_kernel.boot import immortal

class Kind:
    def method(self):
        return [1, "constant of a method"]

old = [Kind(), {"key": ("tuple", 1.5)}, "text" * 3]
gc.freeze(); gc.unfreeze()
immortal.immortalize()
gc.freeze()

none = sys.getrefcount(None)
parts = [old, old[0], Kind, Kind.method, Kind.method.__code__, Kind.method.__code__.co_consts[-1], old[1], old[1]["key"], old[2]]
immortals = [sys.getrefcount(part) == none for part in parts]
new = Kind()
gone = []
weakref.finalize(new, gone.append, 1)
count = sys.getrefcount(new)
del new
# Old containers still let new values go.
value = Kind()
weakref.finalize(value, gone.append, 2)
old.append(value)
del value
old.clear()
for _ in range(1000):
    parts = list(parts)
gc.collect()
print(json.dumps([immortals, count, gone, Kind().method()]))
"""


@needs_python(3, 12)
class Immortalize(unittest.TestCase):
    """Objects before and after."""

    def test_what_is_there_becomes_immortal_and_new_objects_end_as_ever(self) -> None:
        """Also with objects outside the C library's heap."""
        for allocator in ("malloc", "pymalloc"):
            with self.subTest(allocator=allocator):
                done = subprocess.run(
                    [sys.executable, "-c", _PROGRAM],
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=True,
                    env={"PYTHONMALLOC": allocator, "PYTHONPATH": str(PACKAGE)},
                )
                immortals, count, gone, value = json.loads(done.stdout)
                self.assertEqual(immortals, [True] * len(immortals))
                self.assertEqual((count, gone, value), (2, [1, 2], [1, "constant of a method"]))

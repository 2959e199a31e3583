"""Tests of the template's heap, in processes of their own."""

import subprocess
import sys
import unittest

# Makes holes, and tells how much of the heap is free before its end; then settles, and tells again.
_PROGRAM = """
import ctypes, json
from cellblock_kernel.boot import heap

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = heap._Statistics

def holes():
    found = libc.mallinfo2()
    return found.fordblks - found.keepcost

kept = [bytes(700) for _ in range(20_000)]
del kept[::2]
before = holes()
heap.settle()
after, room = holes(), libc.mallinfo2().keepcost
fresh = bytearray(600)
print(json.dumps([before, after, room]))
"""


class Settle(unittest.TestCase):
    """What is left of the holes."""

    def test_holes_are_filled_and_there_is_room_at_the_end(self) -> None:
        """Megabytes of holes become a small rest, beside several megabytes in one piece."""
        import json

        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={"PYTHONMALLOC": "malloc", "PYTHONPATH": ":".join(path for path in sys.path if path)},
        )
        before, after, room = json.loads(done.stdout)
        self.assertGreater(before, 6 << 20)
        self.assertLess(after, before // 10)
        self.assertGreaterEqual(room, 7 << 20)

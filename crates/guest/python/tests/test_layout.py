"""Tests of the joining of mappings, on a map like those of real libraries."""

import unittest

from cellblock_kernel.boot import layout

_SMAPS = """\
1000-3000 r--p 00000000 08:01 11                         /lib/one.so
Rss:                   8 kB
Anonymous:             0 kB
3000-6000 r-xp 00002000 08:01 11                         /lib/one.so
Anonymous:             0 kB
6000-7000 r--p 00005000 08:01 11                         /lib/one.so
Anonymous:             0 kB
7000-8000 r--p 00006000 08:01 11                         /lib/one.so
Anonymous:             4 kB
8000-9000 rw-p 00007000 08:01 11                         /lib/one.so
Anonymous:             4 kB
9000-a000 rw-p 00000000 00:00 0
Anonymous:             4 kB
a000-b000 r--p 00000000 08:01 12                         /lib/two words.so
Anonymous:             0 kB
c000-d000 r-xp 00001000 08:01 12                         /lib/two words.so
Anonymous:             0 kB
"""


class Plan(unittest.TestCase):
    """What is joined, and what is not."""

    def test_code_and_the_constants_around_it_become_one(self) -> None:
        """One change from the first constants to the last, which leaves out what was written."""
        self.assertIn((0x1000, 0x6000, 5), layout.plan(layout.parse(_SMAPS)))

    def test_sealed_data_is_joined_with_the_data_after_it(self) -> None:
        """The sealed piece becomes writable."""
        self.assertIn((0x7000, 0x1000, 3), layout.plan(layout.parse(_SMAPS)))

    def test_pieces_with_a_gap_between_them_are_left_alone(self) -> None:
        """Nothing of the second library changes."""
        self.assertEqual(len(layout.plan(layout.parse(_SMAPS))), 2)

    def test_anonymous_memory_belongs_to_no_file(self) -> None:
        """Its counters are not taken for those of the file before it."""
        mappings = layout.parse(_SMAPS.replace("Anonymous:             4 kB\n9000", "Anonymous:             0 kB\n9000"))
        self.assertFalse(mappings[4].written)
        self.assertEqual([mapping.path for mapping in mappings].count("/lib/one.so"), 5)

    def test_a_pathname_with_blanks_is_kept_whole(self) -> None:
        """As the kernel prints it."""
        self.assertEqual(layout.parse(_SMAPS)[-1].path, "/lib/two words.so")


class Join(unittest.TestCase):
    """The real thing, in a process of its own."""

    def test_a_process_continues_with_fewer_mappings(self) -> None:
        """And the libraries still work."""
        import subprocess
        import sys

        program = (
            "import decimal, json, sqlite3, ssl\n"
            "from cellblock_kernel.boot import layout\n"
            "def count(): return sum(1 for _ in open('/proc/self/maps'))\n"
            "before = count(); layout.join_mappings(); after = count()\n"
            "assert decimal.Decimal(1) / 8 == decimal.Decimal('0.125')\n"
            "assert sqlite3.connect(':memory:').execute('select 1 + 1').fetchone() == (2,)\n"
            "print(after < before)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stdout, "True\n")

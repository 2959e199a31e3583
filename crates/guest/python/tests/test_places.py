"""Directories that lie elsewhere than messages say."""

import unittest

from cellblock_kernel.cell import places


class Places(unittest.TestCase):
    """Paths of messages and where they are."""

    def tearDown(self) -> None:
        """Leaves nothing moved."""
        places.move({})

    def test_nothing_is_moved_by_default(self) -> None:
        """A room with mounts has its directories where messages say."""
        self.assertEqual(places.real("/tmp/data/a.csv"), "/tmp/data/a.csv")

    def test_the_longest_name_wins_and_neighbors_stay(self) -> None:
        """Only whole components are replaced."""
        places.move({"/tmp": "/r/tmp", "/tmp/data": "/r/data", "/opt/layers": "/r/layers"})
        self.assertEqual(places.real("/tmp/data/a.csv"), "/r/data/a.csv")
        self.assertEqual(places.real("/tmp/output"), "/r/tmp/output")
        self.assertEqual(places.real("/opt/layers/abc"), "/r/layers/abc")
        self.assertEqual(places.real("/tmpfile"), "/tmpfile")


if __name__ == "__main__":
    unittest.main()

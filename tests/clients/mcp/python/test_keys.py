"""What a server over HTTP says to a client whose key does not count."""

import unittest

from place import REVISIONS, connected


class Keys(unittest.IsolatedAsyncioTestCase):
    async def test_a_wrong_key_is_refused(self) -> None:
        for mode in REVISIONS:
            with self.subTest(mode), self.assertRaises(Exception) as refused:
                async with connected(mode, key="wrong"):
                    pass
            self.assertIn("Incorrect API key provided: it is not known here", repr(refused.exception))

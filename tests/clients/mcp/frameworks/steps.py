"""What a framework's model has to be shown of each step of the script."""

import os
import unittest
from typing import Final

from model import SCRIPT, Model

URL: Final = os.environ.get("CELLBLOCK_MCP_URL", "http://127.0.0.1:8080/mcp")
KEY: Final = os.environ.get("CELLBLOCK_KEY", "")
HEADERS: Final = {"Authorization": f"Bearer {KEY}"} if KEY else {}
# Seconds; longer than any answer takes on a busy machine.
PATIENCE: Final = 120.0
TASK: Final = "Do what has to be done."
# What stands in the result of each call, in whatever form the framework shows it.
WANTED: Final = (
    ("notes.txt", "cellblock://artifacts/", "session_id"),
    ("north", "25", ".parquet", "cellblock://artifacts/"),
    (".png", "cellblock://artifacts/"),
    ("NameError: name 'absent' is not defined", "line 1"),
    ("42",),
)


class Steps(unittest.IsolatedAsyncioTestCase):
    """A test with a model of its own."""

    def setUp(self) -> None:
        self.model = Model()
        self.addCleanup(self.model.server_close)
        self.addCleanup(self.model.shutdown)

    def check(self, said: object) -> None:
        """The agent came to its end, and the model was shown everything."""
        shown = self.model.shown
        self.assertEqual(len(shown), len(SCRIPT), f"it ended with {said!r} after {shown}")
        for text, wanted in zip(shown, WANTED, strict=True):
            for part in wanted:
                # Some frameworks show the result as JSON or as a representation of Python.
                self.assertIn(part, text.replace("\\'", "'").replace("\\\\", "\\"))
            # A picture as text would fill the model's window.
            self.assertLess(len(text), 8000)
        self.assertIn("42", str(said))

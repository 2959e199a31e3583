"""Tests of the `pip` of a sandbox with a way out: which index, and which wheel of it."""

from __future__ import annotations

import json
import unittest
from unittest import mock

from cellblock_kernel.library import pip


class Index(unittest.TestCase):
    def test_the_arguments_come_before_the_environment(self) -> None:
        with mock.patch.dict("os.environ", {"PIP_INDEX_URL": "http://other/simple"}):
            self.assertEqual(pip.index_of(["install", "-i", "http://it/simple", "x"]), "http://it/simple")
            self.assertEqual(pip.index_of(["install", "--index-url=http://it/simple"]), "http://it/simple")
            self.assertEqual(pip.index_of(["install", "x", "-i"]), "http://other/simple")
        with mock.patch.dict("os.environ", clear=True):
            self.assertEqual(pip.index_of(["install", "x"]), pip._INDEX)


class Wheel(unittest.TestCase):
    def test_the_newest_that_runs_here_is_chosen_whatever_the_form_of_the_page(self) -> None:
        names = ["pip-9.0-py3-none-any.whl", "pip-25.10.1-py3-none-any.whl", "pip-25.9-py3-none-any.whl"]
        needs = [">=3.6", ">=3.9", ""]
        page = "".join(
            f'<a href="../../{name}#sha256=ab" data-requires-python="{need.replace(">", "&gt;")}">{name}</a>'
            for name, need in zip(names, needs)
        )
        files = [
            {"url": f"../../{name}", "requires-python": need or None, "hashes": {"sha256": "ab"}}
            for name, need in zip(names, needs)
        ]
        files.append({"url": "../../pip-99.0-py3-none-any.whl", "yanked": True})
        files.append({"url": "../../pip-99.0.tar.gz"})
        text = json.dumps({"files": files})
        for content, kind in ((page, "text/html"), (text, "application/vnd.pypi.simple.v1+json")):
            read = pip.files_of(content.encode(), kind)
            found = pip.newest(read, 9)
            self.assertEqual(found and (found["url"], found.get("sha256")), (f"../../{names[1]}", "ab"), kind)
            older = pip.newest(read, 8)
            self.assertEqual(older and older["url"], f"../../{names[2]}", kind)
        self.assertIsNone(pip.newest([], 13))


if __name__ == "__main__":
    unittest.main()

"""The package runs with Python 3.9, the oldest one of an image: nothing newer is in its text."""

import ast
import unittest
from pathlib import Path

_PACKAGE = Path(__file__).parents[1] / "cellblock_kernel"
_OLDEST = (3, 9)


class Oldest(unittest.TestCase):
    def test_every_module_is_written_in_its_grammar(self):
        for path in _PACKAGE.rglob("*.py"):
            with self.subTest(path.name):
                ast.parse(path.read_text(), feature_version=_OLDEST)

    def test_no_union_is_evaluated(self):
        """Python 3.9 has no `|` between classes, which is one only where annotations are not evaluated."""
        for path in _PACKAGE.rglob("*.py"):
            tree = ast.parse(path.read_text())
            with self.subTest(path.name):
                self.assertEqual([node.lineno for node in _tested_unions(tree)], [])
                if not _defers_annotations(tree):
                    self.assertEqual([node.lineno for node in _unions_of_annotations(tree)], [])

    def test_no_argument_of_a_newer_python_is_passed(self):
        newer = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only"), ("Popen", "process_group")}
        for path in _PACKAGE.rglob("*.py"):
            with self.subTest(path.name):
                self.assertEqual(newer & _keywords(ast.parse(path.read_text())), set())


def _defers_annotations(tree):
    return any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)


def _is_union(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _tested_unions(tree):
    """Yields calls of `isinstance` whose classes are a union."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            yield from filter(_is_union, node.args[1:])


def _unions_of_annotations(tree):
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for annotation in filter(None, annotations):
            yield from filter(_is_union, ast.walk(annotation))


def _keywords(tree):
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    name = {id(call): getattr(call.func, "id", getattr(call.func, "attr", None)) for call in calls}
    return {(name[id(call)], keyword.arg) for call in calls for keyword in call.keywords}


if __name__ == "__main__":
    unittest.main()

"""Answers a question about code, as an expression in the user's namespace: `scope` is that namespace, `text` the code, `cursor` a place in it.

It leaves `answer`.
"""

import codeop
import inspect
import keyword
import re
import rlcompleter

MOST = 200


def complete():
    token = re.search(r"[\w.]*$", text[:cursor])[0]
    completer = rlcompleter.Completer(scope)
    if "." in token:
        # Without parentheses, which clients add themselves.
        found = {name.rstrip("(") for name in completer.attr_matches(token)}
        start = cursor - len(token)
    else:
        names = [*scope, *dir(scope["__builtins__"]), *keyword.kwlist] if token else list(scope)
        found = {name for name in names if isinstance(name, str) and name.startswith(token)}
        found = {name for name in found if token.startswith("_") or not name.startswith("_")}
        start = cursor - len(token)
    return {"matches": sorted(found)[:MOST], "cursor_start": start, "cursor_end": cursor}


def name_at_cursor():
    before = re.search(r"[\w.]*$", text[:cursor].rstrip("("))[0]
    after = re.match(r"\w*", text[cursor:])[0]
    return (before + after).strip(".")


def explain():
    first, *rest = name_at_cursor().split(".")
    missing = object()
    value = scope.get(first, getattr(__builtins__, first, missing) if first else missing)
    if isinstance(__builtins__, dict) and value is missing:
        value = __builtins__.get(first, missing)
    for name in rest:
        # Not a property, whose code would run.
        value = inspect.getattr_static(value, name, missing) if not inspect.ismodule(value) else getattr(value, name, missing)
    if value is missing:
        return {"found": False, "text": ""}
    try:
        signature = name_at_cursor().split(".")[-1] + str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = ""
    lines = [f"Signature: {signature}"] if signature else []
    lines.append(f"Type:      {type(value).__name__}")
    if detail:
        try:
            lines += ["Source:", inspect.getsource(value)]
        except (OSError, TypeError):
            pass
    documentation = inspect.getdoc(value)
    if documentation:
        lines += ["Docstring:", documentation]
    return {"found": True, "text": "\n".join(lines)[:20_000]}


def finished():
    try:
        compiled = codeop.compile_command(text + "\n" if "\n" in text else text, symbol="exec")
    except (SyntaxError, OverflowError, ValueError):
        # `await` at the top is fine in a cell.
        return {"status": "unknown" if "await" in text else "invalid"}
    lines = text.splitlines() or [""]
    last = lines[-1]
    open_block = len(lines) > 1 and last.startswith((" ", "\t"))
    if compiled is None or open_block:
        indent = re.match(r"\s*", last)[0] + ("    " if last.rstrip().endswith(":") else "")
        return {"status": "incomplete", "indent": indent}
    return {"status": "complete"}


answer = {"complete": complete, "explain": explain, "finished": finished}[question]()

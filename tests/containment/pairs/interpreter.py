"""Two sandboxes do not share objects of the interpreter that they were forked from."""

import sys


def leave(token: str) -> object:
    """Changes a module and a builtin."""
    sys.modules["builtins"].__dict__["left"] = token
    return sys.intern(token)


def find(token: str) -> bool:
    """Looks for the change."""
    return sys.modules["builtins"].__dict__.get("left") == token

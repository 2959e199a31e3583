"""The builtins of cells at the guard's strict level.

They are in the globals of cells only, so that libraries, which use `eval` and `exec` themselves, go on. What a cell's text names
is rejected before it runs (`guard.py`); this is for names that only a run finds, as in `globals()["__builtins__"]["eval"]`.
"""

import builtins
from typing import Any

from cellblock_kernel.cell.guard import STRICT_MODULES, STRICT_NAMES, blocked, blocked_import

_import = builtins.__import__


def restricted() -> dict[str, Any]:
    """Returns Python's builtins, in which functions that run text or wait for a person raise an error."""
    names = dict(builtins.__dict__)
    for name in STRICT_NAMES.keys() & names.keys():
        names[name] = _refusing(name)
    # An import statement uses it.
    names["__import__"] = _import_allowed
    return names


def _refusing(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(blocked(name))

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _import_allowed(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    if level == 0 and isinstance(name, str) and name.split(".")[0] in STRICT_MODULES:
        raise RuntimeError(blocked_import(name))
    return _import(name, globals, locals, fromlist, level)

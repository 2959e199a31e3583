"""`multiprocessing` by `spawn` or `forkserver`: raises an error for what cannot work, instead of hanging.

A spawned process starts a new Python and imports its function by name. Functions and classes of a cell are in
`__main__`, which is in no file: the new process would fail, and a pool would start the next one, forever.
"""

import sys
from types import FunctionType
from typing import Any

_MESSAGE = (
    "{kind} {name!r} is defined in a cell, where a process that multiprocessing starts by 'spawn' or 'forkserver' cannot find it; "
    "use multiprocessing.get_context('fork') (the default here), or write it to a module in /workspace and import it from there"
)
_METHODS = ("spawn", "forkserver")


def prepare(code: str) -> None:
    """Installs the check before a cell that uses one of these methods, or whose session has already imported
    multiprocessing."""
    if "multiprocessing.reduction" not in sys.modules and not any(method in code for method in _METHODS):
        return
    from multiprocessing import reduction, spawn

    pickler: Any = reduction.ForkingPickler
    if "reducer_override" in vars(pickler):
        return
    pickler.reducer_override = _reducer_override
    module: Any = spawn
    original = module.get_preparation_data

    def preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        # The file that a cell comes from is not in the sandbox.
        data.pop("init_main_from_path", None)
        return data

    module.get_preparation_data = preparation_data


def _reducer_override(pickler: Any, value: Any) -> Any:
    if isinstance(value, (FunctionType, type)) and value.__module__ == "__main__" and _spawned():
        kind = "the class" if isinstance(value, type) else "the function"
        raise RuntimeError(_MESSAGE.format(kind=kind, name=value.__qualname__))
    return NotImplemented


def _spawned() -> bool:
    """Returns whether a process is being spawned, or the living ones were, so that pickled objects are meant
    for them."""
    from multiprocessing import context, process

    if context.get_spawning_popen() is not None:  # type: ignore[attr-defined]
        return True
    children = [child for child in process._children if child.is_alive()]  # type: ignore[attr-defined]
    return bool(children) and all(getattr(child, "_start_method", None) in _METHODS for child in children)

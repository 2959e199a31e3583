"""Inputs: values that the host binds by name, read from a file of the sandbox or from bytes."""

import builtins
import keyword
from collections.abc import Iterator, Mapping
from typing import Any

from cellblock_kernel import reading

_RESERVED = frozenset({"display", "inputs"})


class Inputs(Mapping[str, Any]):
    """All bound inputs by name; each is a global of its own, too."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._origins: dict[str, tuple[str, str | None, bytes | None]] = {}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            bound = ", ".join(self._values) or "none"
            raise KeyError(f"no input {name!r}; bound inputs: {bound}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {type(value).__name__}" for name, value in self._values.items())
        return f"<inputs {{{parts}}}>"

    def bind(self, name: str, kind: str, path: str | None, blob: bytes | None) -> Any:
        """Reads a value and keeps it under its name."""
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"input {name!r}: the name is no Python identifier; use letters, digits and _, no keyword")
        if name in _RESERVED or hasattr(builtins, name):
            raise ValueError(f"input {name!r}: the name is taken by a Python builtin or by the kernel; choose another one")
        value = reading.read(name, kind, path, blob)
        self._values[name] = value
        self._origins[name] = (kind, path, blob)
        return value

    def reload(self) -> dict[str, Any]:
        """Reads every input again, as cells may have changed the values in place."""
        self._values = {name: reading.read(name, *origin) for name, origin in self._origins.items()}
        return dict(self._values)

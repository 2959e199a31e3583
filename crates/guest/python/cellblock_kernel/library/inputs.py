"""Inputs: values that the host binds by name, read from a file of the sandbox or from bytes."""

from __future__ import annotations

import builtins
import gc
import json
import keyword
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from cellblock_kernel.cell import places
from cellblock_kernel.library import findings, reading

_RESERVED = frozenset({"display", "inputs"})
_WORD = re.compile(r"\w+")
# Code that contains these may read a global whose name it does not spell.
_BY_NAME = frozenset({"globals", "locals", "vars", "dir", "eval", "exec"})

Reference = dict[str, Any]


class Inputs(Mapping[str, Any]):
    """All bound inputs by name; each is also a global."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._origins: dict[str, tuple[str, str | None, bytes | None]] = {}
        # Locations of tool results, by the names that the running cell has for them; and the
        # results that it has read, by alias.
        self._references: dict[str, Reference] = {}
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        reference = self._references.get(name)
        if reference is None:
            raise KeyError(f"no input {name!r}; bound inputs: {', '.join(self) or 'none'}")
        alias = reference["alias"]
        if alias not in self._read:
            self._read[alias] = _load(reference)
        return self._read[alias]

    def __iter__(self) -> Iterator[str]:
        yield from self._values
        yield from (name for name in self._references if name not in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._references

    def __repr__(self) -> str:
        read = {name: self._read[it["alias"]] for name, it in self._references.items() if it["alias"] in self._read}
        read.update(self._values)
        parts = ", ".join(f"{name}: {type(read[name]).__name__}" if name in read else name for name in self)
        return f"<inputs {{{parts}}}>"

    def refer(self, references: list[Reference], code: str, names: dict[str, Any]) -> None:
        """Offers tool results to a cell, and binds those that its code names. Each cell finds them as they were
        recorded.

        Other results are read through `inputs` only, so that large results cost nothing if they are not used.
        """
        # Results that the last cell read may be large: drop them before reading more.
        self._read = {}
        self._references = {reference["name"]: reference for reference in references}
        words = set(_WORD.findall(code))
        used = list(self._references) if words & _BY_NAME else [name for name in self._references if name in words]
        for name in used:
            names.pop(name, None)
        for name in used:
            names[name] = self[name]

    def bind(self, name: str, kind: str, path: str | None, blob: bytes | None) -> Any:
        """Reads a value and stores it under its name. Findings say what was detected of it."""
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(
                f"input {name!r}: the name is not a valid Python identifier; use letters, digits and _, and no keyword"
            )
        if name in _RESERVED or hasattr(builtins, name):
            raise ValueError(f"input {name!r}: the name is taken by a Python builtin or by the kernel; choose another one")
        notes: list[str] = []
        value = reading.read(name, kind, path, blob, notes)
        for note in notes:
            findings.add("input", note, name)
        self._values[name] = value
        self._origins[name] = (kind, path, blob)
        return value

    def reload(self) -> dict[str, Any]:
        """Reads every input again, as cells may have changed the values."""
        self._values = {name: reading.read(name, *origin) for name, origin in self._origins.items()}
        return dict(self._values)


def _load(reference: Reference) -> Any:
    path, name = places.real(reference["path"]), reference["name"]
    if reference["format"] != "value":
        return reading.read(name, reference["format"], path, None)
    collecting = gc.isenabled()
    # Parsed values are not garbage, and looking for garbage takes as long as parsing.
    gc.disable()
    try:
        with open(path, "rb") as file:
            return json.loads(_part(file.fileno(), reference["offset"], reference["length"]))
    finally:
        if collecting:
            gc.enable()


def _part(descriptor: int, offset: int, length: int) -> str:
    """Returns a part of a file as text, without a copy of its bytes: filling new memory takes as long as decoding."""
    missing = offset + length - os.fstat(descriptor).st_size
    if missing > 0:
        raise EOFError(f"the inputs end {missing} bytes before the end of a value")
    before = offset % mmap.ALLOCATIONGRANULARITY
    with (
        mmap.mmap(descriptor, before + length, prot=mmap.PROT_READ, offset=offset - before) as mapped,
        memoryview(mapped) as whole,
        whole[before:] as part,
    ):
        return str(part, "utf-8")

"""Arguments of a connector's function: its signature, made from a JSON Schema, and values as JSON."""

from __future__ import annotations

import datetime
import math
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from cellblock_kernel.library.connector_errors import InvalidParameterError
from cellblock_kernel.outputs.primitive import with_article

if TYPE_CHECKING:
    from inspect import Signature

_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
_LEVELS = 64


class _Omitted:
    """The default of a parameter that is left out."""

    def __repr__(self) -> str:
        return "…"


_OMITTED = _Omitted()


class Parameters:
    """The parameters of a function, required ones first."""

    def __init__(self, schema: Any) -> None:
        schema = schema if isinstance(schema, dict) else {}
        properties = schema.get("properties")
        self._schemas: dict[str, Any] = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        self._required = set(required) if isinstance(required, list) else set()
        order = sorted(self._schemas, key=self._is_optional)
        # Names in Python, with those of the schema.
        self._names: dict[str, str] = {}
        for name in order:
            self._names[_identifier(name, self._names)] = name

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a call by the schema's names."""
        if len(args) > len(self._names):
            raise InvalidParameterError(f"{len(args)} positional arguments were given, there are {len(self._names)} parameters")
        bound = {name: _plain(value, name, 0) for name, value in zip(self._names.values(), args)}
        for key, value in kwargs.items():
            name = self._names.get(key, key)
            if name in bound:
                raise InvalidParameterError(f"`{key}` was given twice")
            bound[name] = _plain(value, name, 0)
        return bound

    def signature(self) -> Signature:
        """Returns the signature for `help` and `inspect`."""
        from inspect import Parameter, Signature

        found = []
        for key, name in self._names.items():
            schema = self._schema(name)
            default = schema.get("default", _OMITTED)
            if not self._is_optional(name):
                default = Parameter.empty
            annotation = _TYPES.get(schema["type"], Any) if isinstance(schema.get("type"), str) else Parameter.empty
            found.append(Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation))
        return Signature(found)

    def describe(self) -> str:
        """Returns a line for each parameter."""
        lines = []
        for key, name in self._names.items():
            schema = self._schema(name)
            kind = schema.get("type")
            words = [str(kind)] if isinstance(kind, str) else []
            choices = schema.get("enum")
            if isinstance(choices, list):
                words.append("one of " + ", ".join(map(repr, choices[:20])))
            if name in self._required:
                words.append("required")
            text = f"    {key} ({', '.join(words)})" if words else f"    {key}"
            if schema.get("description"):
                text += f": {schema['description']}"
            lines.append(text)
        return "\n".join(lines)

    def _is_optional(self, name: str) -> bool:
        return name not in self._required or "default" in self._schema(name)

    def _schema(self, name: str) -> dict[str, Any]:
        schema = self._schemas[name]
        return schema if isinstance(schema, dict) else {}


def _identifier(name: str, taken: dict[str, str]) -> str:
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in name) or "_"
    if word[0].isdigit():
        word = "_" + word
    if iskeyword(word):
        word += "_"
    chosen, number = word, 2
    while chosen in taken:
        chosen, number = f"{word}_{number}", number + 1
    return chosen


def _plain(value: Any, place: str, level: int) -> Any:
    """Returns a value as JSON has it. Nothing is changed but dates, which become text, and numbers of NumPy."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidParameterError(f"`{place}` is {value}, which JSON does not have; pass None or leave it out")
        return float(value)
    if level > _LEVELS:
        raise InvalidParameterError(f"`{place}` is nested more than {_LEVELS} levels deep, or contains itself")
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{at}]", level + 1) for at, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidParameterError(f"`{place}` has the key {key!r:.100}; keys in JSON are strings")
        return {str(key): _plain(item, f"{place}.{key}", level + 1) for key, item in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    kind = type(value)
    if kind.__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _plain(value.item(), place, level + 1)
    found = with_article(kind.__name__)
    raise InvalidParameterError(f"`{place}` is {found}, which is not JSON; pass numbers, text, lists and dicts")

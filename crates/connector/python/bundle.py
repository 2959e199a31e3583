"""Answers calls of a connector with the functions of a Python module.

Cellblock starts it on the host with the name of the module, such as `macro` or `macro:CONNECTORS`. It speaks the messages of
connectors of the type `command`: lines of JSON over stdin and stdout, and tables as Arrow where pyarrow is installed. It needs
Python 3.11 and nothing else.

The module offers functions, or a bundle of Parsimony. Nothing of Parsimony is imported here: its connectors, results and errors are
known by their attributes and names.
"""

from __future__ import annotations

import asyncio
import collections.abc
import dataclasses
import datetime
import enum
import functools
import importlib
import inspect
import json
import math
import os
import sys
import threading
import traceback
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

# Calls at the same time; a session makes at most 8.
THREADS = 32
# Parsimony's errors, and any others of these names.
KINDS = {
    "UnauthorizedError": "unauthorized",
    "PaymentRequiredError": "payment_required",
    "RateLimitError": "rate_limit",
    "EmptyDataError": "empty_data",
    "ParseError": "parse",
    "InvalidParameterError": "invalid_parameter",
    "TimeoutError": "timeout",
}
NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
Json = Any


class UserError(Exception):
    """A mistake of the operator, in words for the log and for code."""


@dataclasses.dataclass(frozen=True)
class Offered:
    """A function, its parameters that are not bound, and their types."""

    name: str
    description: str
    function: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    types: Mapping[str, Any]
    effect: str

    def card(self) -> dict[str, Json]:
        """Returns its description for Cellblock."""
        properties: dict[str, Json] = {}
        required = []
        extra = False
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = True
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            schema = schema_of(self.types.get(name, Any))
            if parameter.default is parameter.empty:
                required.append(name)
            else:
                schema |= default_of(parameter.default)
            properties[name] = schema
        parameters = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": extra,
        }
        return {"name": self.name, "description": self.description, "parameters": parameters, "effect": self.effect}

    def call(self, arguments: Mapping[str, Json]) -> Any:
        """Calls it."""
        positional, named = [], {}
        for name, value in arguments.items():
            parameter = self.parameters.get(name)
            value = converted(self.types.get(name, Any), value)
            if parameter is not None and parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
        return self.function(*positional, **named)


def imported(name: str) -> Any:
    """Imports `module` or `module:NAME`."""
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        traceback.print_exc()
        raise UserError(f"the module `{module_name}` cannot be imported: {described(error)}") from error
    if not attribute:
        return module
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise UserError(f"the module `{module_name}` has no `{attribute}`")
        value = getattr(value, part)
    return value


def offered(bundle: Any, bound: Mapping[str, Any]) -> dict[str, Offered]:
    """Returns the functions of a module, a mapping, a list or a bundle, or the function that it is."""
    functions: Iterable[tuple[str, Any]]
    if isinstance(bundle, types.ModuleType):
        functions = public(bundle)
    elif isinstance(bundle, collections.abc.Mapping):
        functions = ((str(name), function) for name, function in bundle.items())
    elif callable(bundle):
        functions = [(name_of(bundle), bundle)]
    elif isinstance(bundle, collections.abc.Iterable):
        functions = ((name_of(function), function) for function in bundle)
    else:
        raise UserError(f"`module` names a {type(bundle).__name__}, which is not a bundle, a module, a dict or a list")
    found = {}
    unused = set(bound)
    for name, function in functions:
        if not callable(function):
            raise UserError(f"`{name}` of `module` is not a function")
        found[name] = described_function(name, function, bound, unused)
    if not found:
        raise UserError("`module` has no public functions")
    if unused:
        names = ", ".join(f"`{name}`" for name in sorted(unused))
        raise UserError(f"`bind` has {names}, which no function has as a parameter")
    return found


def public(module: types.ModuleType) -> Iterable[tuple[str, Any]]:
    """Returns the functions of a module that are its own, or those of `__all__`."""
    names = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        own = own or hasattr(value, "exposed_signature")
        if (name in names and callable(value)) if names is not None else (own and not name.startswith("_")):
            yield name, value


def name_of(function: Any) -> str:
    """Returns the name of a function, or of a connector."""
    name = getattr(function, "name", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def described_function(name: str, function: Any, bound: Mapping[str, Any], unused: set[str]) -> Offered:
    """Describes a function whose parameters in `bound` are fixed, and removes these from `unused`."""
    inner = getattr(function, "fn", function)
    # The signature of a connector of Parsimony is in an attribute: it can be called with anything.
    signature = getattr(function, "exposed_signature", None) or getattr(function, "signature", None)
    if not isinstance(signature, inspect.Signature):
        signature = inspect.signature(function)
    try:
        annotations = typing.get_type_hints(inner, include_extras=True)
    except Exception:
        # Some types only exist while types are checked.
        annotations = {name: it.annotation for name, it in signature.parameters.items() if it.annotation is not it.empty}
    values = {key: value for key, value in bound.items() if key in signature.parameters}
    unused.difference_update(values)
    if values:
        bind = getattr(function, "bind", None)
        function = bind(**values) if callable(bind) else functools.partial(function, **values)
    text = getattr(function, "description", None) or inspect.getdoc(inner) or ""
    effect = getattr(inner, "effect", "reads")
    if effect not in ("reads", "writes"):
        raise UserError(f"`{name}.effect` must be `reads` or `writes`")
    parameters = {key: it for key, it in signature.parameters.items() if key not in values}
    return Offered(name, str(text), function, parameters, annotations, effect)


def schema_of(kind: Any) -> dict[str, Json]:
    """Returns the JSON Schema of a type; a type that is not known allows everything."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        schema = schema_of(inner[0])
        for it in inner[1:]:
            text = it if isinstance(it, str) else getattr(it, "description", None)
            if isinstance(text, str):
                schema["description"] = text
        return schema
    if kind is None:
        return {"type": "null"}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [json_value(it.value) for it in kind]}
    if isinstance(kind, type) and kind in NAMES:
        return {"type": NAMES[kind]}
    if kind is datetime.datetime:
        return {"type": "string", "format": "date-time"}
    if kind is datetime.date:
        return {"type": "string", "format": "date"}
    if origin is typing.Literal:
        return {"enum": [json_value(it) for it in inner]}
    if origin in (typing.Union, types.UnionType):
        schemas = [schema_of(it) for it in inner]
        return {} if {} in schemas else {"anyOf": schemas}
    if (origin or kind) in LISTS:
        items = [it for it in inner if it is not ...]
        return {"type": "array"} | ({"items": schema_of(items[0])} if len(set(items)) == 1 else {})
    if (origin or kind) in MAPPINGS:
        return {"type": "object"} | ({"additionalProperties": schema_of(inner[1])} if len(inner) == 2 else {})
    return {}


def default_of(value: Any) -> dict[str, Json]:
    """Returns the default as a part of a schema, if it has a form in JSON. Otherwise the function inserts it itself."""
    if isinstance(value, enum.Enum):
        value = value.value
    simple = value is None or isinstance(value, (str, int, float, list, dict))
    try:
        return {"default": json.loads(json.dumps(value, allow_nan=False))} if simple else {}
    except (TypeError, ValueError):
        return {}


def converted(kind: Any, value: Json) -> Any:
    """Returns an argument with the type of its parameter, where JSON has another."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return converted(inner[0], value)
    if origin in (typing.Union, types.UnionType):
        changed = (converted(it, value) for it in inner)
        return next((it for it in changed if it is not value), value)
    if isinstance(value, str) and kind in (datetime.date, datetime.datetime):
        try:
            return kind.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next((it for it in kind if json_value(it.value) == value), value)
    return value


def answer(result: Any) -> tuple[dict[str, Json], bytes]:
    """Returns the message for a result without its `id`, and the Arrow stream that follows it."""
    if hasattr(result, "provenance"):
        result = result.raw if hasattr(result, "raw") else result.data
    library = type(result).__module__.partition(".")[0]
    kind = type(result).__name__
    if library == "pandas" and kind == "Series":
        result, kind = result.to_frame(), "DataFrame"
    if library == "pandas" and kind == "DataFrame":
        return pandas_answer(result)
    if library == "polars" and kind == "DataFrame":
        try:
            return {}, stream(result.to_arrow())
        except ImportError:
            return {"rows": json_value(result.to_dicts())}, b""
    if library == "pyarrow" and kind == "Table":
        return {}, stream(result)
    return {"value": json_value(result)}, b""


def pandas_answer(frame: Any) -> tuple[dict[str, Json], bytes]:
    """Returns the message for a frame, and its Arrow stream."""
    # The index of a frame is data, unless it only counts.
    if type(frame.index).__name__ != "RangeIndex":
        taken = any(name in frame.columns for name in frame.index.names if name is not None)
        frame = frame.reset_index(drop=taken)
    frame = frame.rename(columns=str)
    try:
        import pyarrow
    except ImportError:
        return {"rows": json_value(frame.to_dict("records"))}, b""
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError):
        # A column with values of several types.
        return {"rows": json_value(frame.to_dict("records"))}, b""
    return {}, stream(table)


def stream(table: Any) -> bytes:
    """Returns a table as an Arrow IPC stream, without dictionaries and views."""
    import pyarrow

    fields = [pyarrow.field(field.name, plain_type(field.type)) for field in table.schema]
    table = table.cast(pyarrow.schema(fields)).replace_schema_metadata(None)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)
    return bytes(sink.getvalue())


def plain_type(kind: Any) -> Any:
    """Returns the type whose values an answer may have."""
    import pyarrow

    if pyarrow.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    name = str(kind)
    return {"string_view": pyarrow.string(), "binary_view": pyarrow.binary()}.get(name, kind)


def json_value(value: Any) -> Json:
    """Returns a value as JSON has it. What is not a number is null."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return json_value(value.value)
    if isinstance(value, collections.abc.Mapping):
        return {str(key): json_value(it) for key, it in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_value(it) for it in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json_value({it.name: getattr(value, it.name) for it in dataclasses.fields(value)})
    if type(value).__name__ == "NAType":
        return None
    for method in ("model_dump", "isoformat", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            text = convert()
            # The text of a missing time.
            return None if text == "NaT" else json_value(text)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise UserError("the function returned bytes, which have no form in JSON; return text or a table")
    return str(value)


def failure(error: BaseException) -> dict[str, Json]:
    """Returns an exception as the message's `error`."""
    names = [kind.__name__ for kind in type(error).__mro__]
    kind = next((KINDS[name] for name in names if name in KINDS), "provider")
    told: dict[str, Json] = {"kind": kind, "message": described(error)}
    for key, attribute, types_of in (("retry_after", "retry_after", (int, float)), ("status", "status_code", int)):
        value = getattr(error, attribute, None)
        if isinstance(value, types_of) and math.isfinite(value) and 0 <= value < 65_536:
            told[key] = value
    return told


def described(error: BaseException) -> str:
    """Returns the text of an exception without folders of this machine, which are not for the sandbox."""
    text = str(error)
    for folder in sorted({os.getcwd(), sys.prefix, sys.base_prefix, *sys.path, os.path.expanduser("~")}, key=len, reverse=True):
        if len(folder) > 1:
            text = text.replace(folder, "…")
    known = any(kind.__name__ in KINDS or kind.__name__ == "ConnectorError" for kind in type(error).__mro__)
    if isinstance(error, UserError) or (known and text):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Server:
    """Answers requests until stdin ends."""

    def __init__(self, name: str, answers: BinaryIO) -> None:
        self.name = name
        self.answers = answers
        self.writing = threading.Lock()
        self.threads = ThreadPoolExecutor(THREADS)
        self.functions: dict[str, Offered] = {}
        self.loop = asyncio.new_event_loop()
        self.awaited: dict[int, Future[Any]] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def serve(self, requests: Iterable[bytes]) -> None:
        """Reads requests."""
        for line in requests:
            request = json.loads(line)
            if request["method"] == "functions":
                self.list(request)
            elif request["method"] == "call":
                self.threads.submit(self.call, request)
            elif awaited := self.awaited.get(request["id"]):
                awaited.cancel()

    def list(self, request: Mapping[str, Json]) -> None:
        """Answers the request for the functions."""
        try:
            self.functions = offered(imported(self.name), request.get("bind", {}))
            told: dict[str, Json] = {"value": [it.card() for it in self.functions.values()]}
        except Exception as error:
            told = {"error": failure(error)}
        self.send({"id": request["id"], **told})

    def call(self, request: Mapping[str, Json]) -> None:
        """Answers a call."""
        call, table = request["id"], b""
        try:
            result = self.functions[request["function"]].call(request["arguments"])
            if inspect.isawaitable(result):
                result = self.result_of(call, result)
            told, table = answer(result)
        except BaseException as error:
            # Also `SystemExit`: the call is answered in any case.
            traceback.print_exc()
            told = {"error": failure(error)}
        self.send({"id": call, **told, **({"arrow": len(table)} if table else {})}, table)

    def result_of(self, call: int, result: Awaitable[Any]) -> Any:
        """Waits for the result of an asynchronous function, unless the call is canceled."""

        async def awaited() -> Any:
            return await result

        future = asyncio.run_coroutine_threadsafe(awaited(), self.loop)
        self.awaited[call] = future
        try:
            return future.result()
        finally:
            del self.awaited[call]

    def send(self, message: Mapping[str, Json], table: bytes = b"") -> None:
        """Writes a message and the table that follows it."""
        line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        with self.writing:
            self.answers.write(line + b"\n")
            self.answers.write(table)
            self.answers.flush()


def main() -> None:
    """Serves the module that the first argument names."""
    # What the module prints goes to the log, and nothing reads requests but this program.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Server(sys.argv[1], answers).serve(requests)
    # Cellblock has ended: calls that still run have nobody to answer to.
    os._exit(0)


if __name__ == "__main__":
    main()

"""Functions of the host that cells call: `weather.get_forecast(city="Kyiv")`."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cellblock_kernel.cell.channel import decode
from cellblock_kernel.library import broker, connector_errors, missing, public
from cellblock_kernel.library.arguments import Parameters
from cellblock_kernel.library.broker import BrokerError
from cellblock_kernel.library.connector_errors import InvalidParameterError
from cellblock_kernel.outputs.primitive import with_article

if TYPE_CHECKING:
    from inspect import Signature

    from cellblock_kernel.library.fetched import Fetched

_ARGUMENT_BYTES = 1 << 20
_LISTED = 20
# The host makes fewer requests at the same time; the next ones wait there.
_AT_ONCE = 16

_dumps = json.dumps


class Function:
    """A function of a connector. `await f.aio(…)` calls it without blocking the event loop, `f.map([{…}, …])` makes
    several calls side by side, and `f.fetch(…)` returns the answer with its provenance."""

    def __init__(self, connector: str, card: dict[str, Any]) -> None:
        self._connector = connector
        self._card = card
        self._parameters = Parameters(card.get("parameters"))
        self.__name__: str = card["function"]
        self.__qualname__ = f"{connector}.{self.__name__}"
        about = [card.get("description") or "", self._parameters.describe()]
        if card.get("effect") == "writes":
            about.append("Each call is made: an equal one may change something again.")
        self.__doc__ = "\n\n".join(part for part in about if part)

    @property
    def __signature__(self) -> Signature:
        return self._parameters.signature()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function and returns its answer, a copy of its own."""
        params = self._params(args, kwargs)
        try:
            return _value(broker.call("fetch", params))
        except BrokerError as error:
            raise connector_errors.of_host(error.code, str(error), error.details) from None

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from a coroutine."""
        params = self._params(args, kwargs)
        try:
            return _value(await broker.call_async("fetch", params))
        except BrokerError as error:
            raise connector_errors.of_host(error.code, str(error), error.details) from None

    def fetch(self, *args: Any, **kwargs: Any) -> Fetched:
        """Calls the function and returns its answer in an envelope: `.data`, `.df`, `.columns`, `.row_count`,
        `.provenance`, `.artifact`, `.cached`."""
        from cellblock_kernel.library.fetched import Fetched

        params = {**self._params(args, kwargs), "envelope": True}
        try:
            answer = broker.call("fetch", params)
        except BrokerError as error:
            raise connector_errors.of_host(error.code, str(error), error.details) from None
        return Fetched(self._connector, self.__name__, answer[0], _value(answer))

    def map(self, many: Iterable[dict[str, Any]]) -> list[Any]:
        """Calls the function once for each dict of arguments, side by side within the limits. Returns the answers in
        the same order, or raises the first error in that order."""
        calls = []
        for at, arguments in enumerate(many):
            if not isinstance(arguments, dict):
                found = with_article(type(arguments).__name__)
                raise InvalidParameterError(f"item {at} is {found}; pass a list of dicts of arguments")

            calls.append(self._params((), arguments))
        try:
            return [_value(answer) for answer in broker.call_many("fetch", calls, _AT_ONCE)]
        except BrokerError as error:
            raise connector_errors.of_host(error.code, str(error), error.details) from None

    def _params(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        arguments = self._parameters.bind(args, kwargs)
        size = len(_dumps(arguments))
        if size > _ARGUMENT_BYTES:
            raise InvalidParameterError(
                f"the arguments have {size} bytes as JSON, the limit is {_ARGUMENT_BYTES}; pass less at once"
            )
        return {"connector": self._connector, "function": self.__name__, "arguments": arguments}

    def __repr__(self) -> str:
        line = f"{self.__qualname__}{self.__signature__}"
        about = (self._card.get("description") or "").strip()
        return f"{line}  # {about.splitlines()[0][:200]}" if about else line


class Connector:
    """A named set of functions of the host."""

    _bundle: dict[str, Any]
    _functions: dict[str, Function]
    _others: dict[str, Function]

    def __init__(self, bundle: dict[str, Any]) -> None:
        name = bundle["name"]
        functions = {card["function"]: Function(name, card) for card in bundle["functions"]}
        # The names by which the connector itself knows its functions.
        others = {card["name"]: functions[card["function"]] for card in bundle["functions"]}
        about = bundle.get("description") or f"Functions of the connector {name}."
        unavailable = bundle.get("unavailable")
        if unavailable:
            about += f"\n\nNot complete: {unavailable}"
        listed = "\n".join(map(repr, functions.values()))
        self.__dict__.update(
            __doc__=f"{about}\n\n{listed}".rstrip(),
            _bundle=bundle,
            _functions=functions,
            _others={**others, **functions},
        )

    def __getattr__(self, name: str) -> Function:
        try:
            return self[name]
        except KeyError as error:
            raise missing.attribute(error.args[0], name, self) from None

    def __getitem__(self, name: str) -> Function:
        found: Function | None = self._others.get(name)
        if found is not None:
            return found
        connector = self._bundle["name"]
        if self._bundle.get("unavailable") and not name.startswith("_"):
            # The host asks again.
            return Function(connector, {"name": name, "function": name})
        known = ", ".join(list(self._functions)[:_LISTED])
        raise KeyError(f"the connector {connector} has no function {name!r}; it has {known or 'none'}")

    def __dir__(self) -> list[str]:
        return list(self._functions)

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __repr__(self) -> str:
        names = ", ".join(self._functions) or "none"
        return f"<connector {self._bundle['name']}: {names}>"


class Connectors:
    """The connectors of this session; `connectors.search("rain")` finds functions by words."""

    def __init__(self, connectors: dict[str, Connector]) -> None:
        self._connectors = connectors

    def __getitem__(self, name: str) -> Connector:
        return self._connectors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._connectors)

    def __len__(self) -> int:
        return len(self._connectors)

    def search(self, words: str, limit: int = 10) -> list[Function]:
        """Returns the functions whose names and descriptions contain the words, best matches first."""
        wanted = words.lower().split()
        found = []
        for connector in self._connectors.values():
            for function in connector:
                name, text = function.__qualname__.lower(), (function.__doc__ or "").lower()
                score = sum(2 * (word in name) + (word in text) for word in wanted)
                if score:
                    found.append((score, function))
        found.sort(key=lambda pair: -pair[0])
        return [function for _, function in found[:limit]]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._connectors.values()))


def names(bundles: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the names that cells have for their connectors."""
    connectors = {bundle["name"]: Connector(bundle) for bundle in bundles}
    return {**connectors, "connectors": Connectors(connectors), "cellblock": public.module}


def unknown(tree: ast.AST, bound: dict[str, Any], line: int) -> list[dict[str, Any]]:
    """Finds functions that code names and its connectors do not have."""
    nodes = list(ast.walk(tree))
    rebound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    rebound.update(node.asname or node.name for node in nodes if isinstance(node, ast.alias))
    rebound.update(node.arg for node in nodes if isinstance(node, ast.arg))
    found: list[dict[str, Any]] = []
    for node in nodes:
        if not isinstance(node, (ast.Attribute, ast.Subscript)) or not isinstance(node.value, ast.Name):
            continue
        connector = bound.get(node.value.id)
        if not isinstance(connector, Connector) or node.value.id in rebound:
            continue
        try:
            if isinstance(node, ast.Attribute):
                getattr(connector, node.attr)
            elif isinstance(node.slice, ast.Constant):
                connector[node.slice.value]
        except (AttributeError, KeyError, TypeError) as error:
            found.append({"rule": "connector", "line": node.lineno + line - 1, "message": str(error.args[0])})
    return found[:_LISTED]


def _value(answer: tuple[Any, list[bytes]]) -> Any:
    value, blobs = answer
    if value.get("form") == "arrow":
        from cellblock_kernel.library.fetched import frame

        return frame(blobs[0])
    return decode(blobs[0])

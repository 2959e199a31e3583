"""Writes the operations and types of the clients from `docs/reference/openapi.json`.

With `--check`, it writes nothing, and exits with 1 if one of the files is not current.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/reference/openapi.json"
#: Groups of operations that the clients have. The others are those of OpenAI and Anthropic, which their own SDKs call.
TAGS = {"sessions", "volumes", "runs", "projects", "connectors", "artifacts", "skills", "sandbox server", "operations"}
#: Operations for monitors, without types of their own.
PROBES = {"health", "healthz", "readyz", "metrics", "openapi"}
#: Types that the Python client has as classes.
CLASSES = {"Cell", "Try", "CellEvent", "Output"}
#: Types of their attributes.
ATTRIBUTES = {"TryChanges"}
PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
SCRIPT = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
MARK = "Made by `python/generate.py` from `docs/reference/openapi.json`."
WIDTH = 140

Schema = dict[str, Any]


def name_of(reference: str) -> str:
    return reference.rpartition("/")[2]


class Document:
    """The description of the server's API."""

    def __init__(self, text: str) -> None:
        value = json.loads(text)
        self.schemas: dict[str, Schema] = value["components"]["schemas"]
        self.operations = [
            (operation["operationId"], method.upper(), path, operation)
            for path, methods in value["paths"].items()
            for method, operation in methods.items()
            if TAGS & set(operation["tags"]) and operation["operationId"] not in PROBES
        ]

    def result(self, operation: Schema) -> Schema | None:
        """Returns the schema of a successful response; `None` if it is not JSON."""
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                content = response.get("content", {}).get("application/json")
                return content["schema"] if content else None
        return None

    @property
    def lists(self) -> set[str]:
        """Types that only hold a list, which the clients return itself."""
        return {name for name, schema in self.schemas.items() if name.endswith("List") and "data" in schema.get("properties", {})}

    def item(self, result: Schema | None) -> Schema | None:
        """Returns the schema of an item, if a response is a list."""
        name = name_of(result.get("$ref", "")) if result else ""
        return self.schemas[name]["properties"]["data"]["items"] if name in self.lists else None

    def flat(self, schema: Schema) -> Schema:
        """Returns an object's schema with the fields of the variants and references that it is made of."""
        properties: dict[str, Schema] = {}
        required: set[str] = set()
        if "$ref" in schema:
            base = self.flat(self.schemas[name_of(schema["$ref"])])
            properties, required = dict(base["properties"]), set(base["required"])
        if "oneOf" in schema:
            variants = [self.flat(it) for it in schema["oneOf"]]
            for key in dict.fromkeys(key for it in variants for key in it["properties"]):
                kinds = [it["properties"][key] for it in variants if key in it["properties"]]
                unique = {json.dumps({k: v for k, v in kind.items() if k != "description"}): kind for kind in kinds}
                properties[key] = kinds[0] if len(unique) == 1 else {"anyOf": list(unique.values())}
            required |= set.intersection(*(it["required"] for it in variants))
        properties |= schema.get("properties", {})
        return {"properties": properties, "required": required | set(schema.get("required", []))}

    def reachable(self, omitted: set[str], *, requests: bool, tags: set[str] = TAGS) -> list[str]:
        """Lists the types that responses of the operations have, and requests if they are wanted, by name."""
        found: set[str] = set()

        def visit(value: Any) -> None:
            if isinstance(value, dict):
                name = name_of(value["$ref"]) if "$ref" in value else None
                if name is not None and name not in found | omitted:
                    found.add(name)
                    visit(self.schemas[name])
                for it in value.values():
                    visit(it)
            elif isinstance(value, list):
                for it in value:
                    visit(it)

        visit([{"$ref": name} for name in ATTRIBUTES if "sessions" in tags])
        for operation in (it for _, _, _, it in self.operations if tags & set(it["tags"])):
            visit(operation.get("requestBody") if requests else None)
            visit([response for status, response in operation["responses"].items() if status.startswith("2")])
        return sorted(found)


def constants(schema: Schema) -> list[str] | None:
    """Returns the words that a value can be, if its schema lists them."""
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    choices: list[Schema] = schema.get("oneOf") or schema.get("anyOf") or []
    variants = [constants(it) for it in choices]
    known = [it for it in variants if it is not None]
    if not known or len(known) < len(variants) or "properties" in schema:
        return None
    return [word for it in known for word in it]


def python_type(schema: Any) -> str:
    """Returns a schema as an annotation of Python."""
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return "dict[str, Any]" if name in CLASSES else name
    words = constants(schema)
    if words is not None:
        return f"Literal[{', '.join(json.dumps(word) for word in words)}]"
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return joined(python_type(it) for it in schema[key])
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return joined(python_kind(kind, schema) for kind in kinds)


def python_kind(kind: str | None, schema: Schema) -> str:
    if kind == "array":
        return f"list[{python_type(schema.get('items'))}]"
    if kind == "object":
        return f"dict[str, {python_type(schema.get('additionalProperties'))}]"
    return PYTHON.get(kind or "", "Any")


def joined(types: Iterator[str]) -> str:
    unique = list(dict.fromkeys(part for it in types for part in ([it] if re.search(r"[\[{<]", it) else it.split(" | "))))
    return "Any" if "Any" in unique else " | ".join(sorted(unique, key=lambda it: it in ("None", "null")))


def first_sentence(schema: Schema) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return re.split(r"(?<=\.) ", text)[0]


def wrapped(before: str, parts: list[str], after: str) -> str:
    """Returns one line, or several as a formatter breaks them."""
    line = before + ", ".join(parts) + after
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(before) - len(before.lstrip()))
    return "\n".join([before, *(f"{indent}    {it}," for it in parts), indent + after])


def python_types(document: Document, *, of_sessions: bool) -> str:
    """Returns the module of the types that sessions have, or of those that only other objects of the server have."""
    names = [name for name in document.reachable(CLASSES, requests=False) if name not in document.lists]
    sessions = document.reachable(CLASSES, requests=False, tags={"sessions"})
    own = [name for name in names if (name in sessions) == of_sessions]
    plain: list[str] = []
    classes: list[str] = []
    for name in own:
        schema = document.schemas[name]
        if "properties" not in schema and not any("properties" in it for it in schema.get("oneOf", [])):
            words = constants(schema)
            literal = wrapped(f"{name} = Literal[", [json.dumps(word) for word in words], "]") if words else ""
            plain.append(literal or f"{name}: TypeAlias = {json.dumps(python_type(schema))}")
            continue
        flat = document.flat(schema)
        same = next((it for it in own[: own.index(name)] if document.flat(document.schemas[it]) == flat), None)
        if same:
            plain.append(f"{name}: TypeAlias = {json.dumps(same)}")
            continue
        if any(not key.isidentifier() or keyword.iskeyword(key) for key in flat["properties"]):
            sys.exit(f"`{name}` has a field that Python cannot declare")
        text = first_sentence(schema)
        classes += ["", "", f"class {name}(TypedDict):", *([f'    """{text}"""', ""] if text else [])]
        for key, value in flat["properties"].items():
            kind = python_type(value)
            line = f"    {key}: {kind if key in flat['required'] else f'NotRequired[{kind}]'}"
            words = constants(value)
            classes.append(wrapped(f"    {key}: Literal[", [json.dumps(it) for it in words], "]") if words and len(line) > WIDTH else line)
    used = "\n".join([*plain, *classes])
    others = [name for name in names if name not in own and re.search(rf"\b{name}\b", re.sub(r'""".*"""', "", used))]
    lines = [
        f'"""{"Objects of the API" if of_sessions else "Objects of the API of servers"}, as the client returns them. {MARK}"""',
        "",
        "from __future__ import annotations",
        "",
        f"from typing import TYPE_CHECKING, Any, Literal, {'TypeAlias, ' if 'TypeAlias' in used else ''}TypedDict",
        "",
    ]
    if not of_sessions:
        lines += ["if TYPE_CHECKING:", "    from typing_extensions import NotRequired", ""]
        lines += [wrapped("    from .types import ", others, ""), ""] if others else []
    else:
        moved = [name for name in names if name not in own]
        lines.insert(2, "# ruff: noqa: I001\n")
        lines += ["from ._server_types import (", *(f"    {name} as {name}," for name in moved), ")", ""]
        lines += ["if TYPE_CHECKING:", "    from typing_extensions import NotRequired", ""]
    return "\n".join(lines + plain + classes) + "\n"


def python_operations(document: Document) -> str:
    lines = [f'"""Operations of a server. {MARK}"""', "", "from __future__ import annotations", "", "from typing import Any", ""]
    lines += ["from . import types", "from ._http import Download, Listing, Operation", ""]
    for identifier, method, path, operation in document.operations:
        arguments = [json.dumps(method), json.dumps(path)]
        result = document.result(operation)
        if result is None:
            lines.append(wrapped(f"{identifier.upper()} = Download(", arguments, ")"))
            continue
        item = document.item(result)
        kind = re.sub(r"\b(?!Any\b)([A-Z]\w+)\b", r"types.\1", python_type(item or result))
        made = "Listing" if item else "Operation"
        lines.append(wrapped(f"{identifier.upper()}: {made}[{kind}] = {made}(", arguments, ")"))
    return "\n".join(lines) + "\n"


def script_type(schema: Any) -> str:
    """Returns a schema as a type of TypeScript."""
    if not isinstance(schema, dict):
        return "any"
    own = script_object(schema) if "properties" in schema else None
    if "$ref" in schema:
        return name_of(schema["$ref"]) + (f" & {own}" if own else "")
    words = constants(schema)
    if words is not None:
        return " | ".join(json.dumps(word) for word in words)
    for key in ("oneOf", "anyOf"):
        if key in schema:
            variants = joined(script_type(it) for it in schema[key])
            return f"{own} & ({variants})" if own else variants
    if own:
        return own
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return joined(script_kind(kind, schema) for kind in kinds)


def script_kind(kind: str | None, schema: Schema) -> str:
    if kind == "array":
        return f"Array<{script_type(schema.get('items'))}>"
    if kind == "object":
        return f"Record<string, {script_type(schema.get('additionalProperties'))}>"
    return SCRIPT.get(kind or "", "any")


def script_object(schema: Schema) -> str:
    required = schema.get("required", [])
    fields = (f"{key}{'' if key in required else '?'}: {script_type(value)}" for key, value in schema["properties"].items())
    return f"{{ {'; '.join(fields)} }}"


def script(document: Document) -> str:
    lines = [f"// {MARK}", "", 'import { download, json } from "./http.js";']
    for name in document.reachable(set(), requests=True):
        schema = document.schemas[name]
        lines += ["", f"/** {first_sentence(schema) or 'An object of the API.'} */"]
        if "properties" in schema and "oneOf" not in schema:
            lines.append(f"export interface {name} {{")
            for key, value in schema["properties"].items():
                text = " ".join(str(value.get("description", "")).split()) if isinstance(value, dict) else ""
                lines += [f"  /** {text} */"] if text else []
                lines.append(f"  {key}{'' if key in schema.get('required', []) else '?'}: {script_type(value)};")
            lines.append("}")
        else:
            lines.append(f"export type {name} = {script_type(schema)};")
    lines += ["", "/** Operations of a server, by their names in the API's description. */", "export const operations = {"]
    for identifier, method, path, operation in document.operations:
        result = document.result(operation)
        made = "download" if result is None else f"json<{script_type(result)}>"
        lines.append(f"  {identifier}: {made}({json.dumps(method)}, {json.dumps(path)}),")
    return "\n".join([*lines, "};", ""])


def main() -> int:
    document = Document(DOCUMENT.read_text())
    files = {
        "python/src/cellblock/types.py": python_types(document, of_sessions=True),
        "python/src/cellblock/_server_types.py": python_types(document, of_sessions=False),
        "python/src/cellblock/_operations.py": python_operations(document),
        "javascript/src/generated.ts": script(document),
    }
    stale = [path for path, text in files.items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is not current: run `python3 python/generate.py`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).write_text(files[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

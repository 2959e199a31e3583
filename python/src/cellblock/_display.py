"""Results as a notebook shows them.

Everything in them comes from a sandbox: text is cut and escaped, also for notebooks in terminals, and pictures run no script.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from ._errors import CellblockError

#: Rows and columns of a table, and characters of a text, that are shown.
_ROWS, _COLUMNS, _CHARACTERS = 20, 30, 20_000
#: Characters that move a terminal's cursor or reorder text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")


def bundle(
    outputs: Sequence[dict[str, Any]],
    fetch: Callable[[dict[str, Any]], bytes],
    *,
    before: Sequence[str] = (),
    after: str | None = None,
) -> dict[str, str]:
    """Returns outputs with the text before and after them as plain text and as HTML. `fetch` returns a picture's bytes."""
    pairs = [(it, _pre(it)) for it in before if it]
    pairs += [_shown(output, fetch) for output in outputs]
    pairs += [(after, _pre(after))] if after else []
    plain = "\n".join(_visible(it.rstrip("\n")) for it, _ in pairs)
    return {"text/plain": plain, "text/html": "".join(page for _, page in pairs)}


def _shown(output: dict[str, Any], fetch: Callable[[dict[str, Any]], bytes]) -> tuple[str, str]:
    if output["type"] == "dataframe":
        return _table(output)
    image = output.get("image")
    if image and image["media_type"] in _PICTURES:
        words = str(output.get("alt") or output.get("title") or output["type"])
        try:
            data = base64.b64encode(fetch(image)).decode()
        except CellblockError as error:
            # A notebook shows what it can: the artifact may have been deleted.
            return words, _pre(f"{words}: {error}")
        return words, f'<img alt="{html.escape(words)}" src="data:{image["media_type"]};base64,{data}">'
    text = _text(output)
    return text, _pre(text)


def _text(output: dict[str, Any]) -> str:
    for field in ("traceback", "text", "alt"):
        if output.get(field):
            return str(output[field])
    value = output.get("value", output["type"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(output: dict[str, Any]) -> tuple[str, str]:
    columns = [str(it["name"]) for it in output["columns"]][:_COLUMNS]
    rows = [row[:_COLUMNS] for row in output["head"][:_ROWS]]
    size = f"rows: {output['rows']}, columns: {len(output['columns'])}"
    plain = "\n".join("\t".join(map(_cell, row)) for row in [columns, *rows])
    head = "".join(f"<th>{html.escape(it)}</th>" for it in columns)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(_cell(it))}</td>' for it in row)}</tr>" for row in rows)
    return f"{plain}\n{size}", f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(size)}</p>"


def _cell(value: Any) -> str:
    return "" if value is None else _visible(str(value)[:200])


def _visible(text: str) -> str:
    rest = len(text) - _CHARACTERS
    note = f"\n… {rest} more characters" if rest > 0 else ""
    return _CONTROLS.sub(lambda it: f"\\u{ord(it[0]):04x}", text[:_CHARACTERS]) + note


def _pre(text: str) -> str:
    return f"<pre>{html.escape(_visible(text))}</pre>"

"""Values with `_repr_*_` methods: a bundle of MIME types and a text."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.outputs.limits import Limits, cut
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.primitive import repr_is_default, text_of

_METHODS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_json_", "application/json"),
)
_dumps = json.dumps
_default_repr = object.__repr__
# In an element, or the first one of matplotlib's animations. Other scripts may contain pictures that are not shown.
_PICTURE = pattern(r"(?:<img\b[^>]*?\ssrc=[\"']|\bframes\[0\] = \")data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\\\s]+)")


class Bundle:
    """Several representations of one value."""

    def __init__(self, forms: dict[str, Any]) -> None:
        self._forms = forms

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": ", ".join(self._forms), **self._forms}


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a value by its class's methods; a method that raises or returns None contributes nothing."""
    kind = type(value)
    bundle: dict[str, Any] = {}
    if hasattr(kind, "_repr_mimebundle_"):
        made = _call(kind._repr_mimebundle_, value, include=None, exclude=None)
        if isinstance(made, tuple) and made:
            made = made[0]
        if isinstance(made, dict):
            bundle = {str(mime): data for mime, data in made.items()}
    for method, mime in _METHODS:
        if mime not in bundle and hasattr(kind, method):
            data = _call(getattr(kind, method), value)
            if isinstance(data, tuple) and data:
                data = data[0]
            if data is not None:
                bundle[mime] = data
    text = bundle.pop("text/plain", None)
    if not bundle:
        return None
    _add_picture(bundle)
    mimes: list[str] = []
    blobs: list[Buffer] = []
    for mime, data in bundle.items():
        blob = _bytes(mime, data)
        if blob is not None:
            mimes.append(mime)
            blobs.append(blob)
    if not isinstance(text, str) or text == _default_repr(value):
        text = _text(value, bundle)
    shown, truncated = cut(text, limits.text_chars)
    header: dict[str, Any] = {"type": "rich", "name": name, "mimes": mimes, "text": shown}
    if truncated:
        header["truncated"] = True
    return Output(header, blobs)


def _add_picture(bundle: dict[str, Any]) -> None:
    """Adds the first picture that HTML contains, for readers who see pictures and not HTML."""
    html = bundle.get("text/html")
    if isinstance(html, str) and not any(mime.startswith("image/") for mime in bundle):
        found = _PICTURE.search(html)
        if found is not None:
            bundle[found[1]] = found[2]


def _text(value: Any, bundle: dict[str, Any]) -> str:
    """Returns the text of a value that names none itself: its `repr`, or else what its other forms say."""
    if repr_is_default(value):
        for mime in ("text/markdown", "text/latex"):
            if isinstance(bundle.get(mime), str):
                return str(bundle[mime])
        if isinstance(bundle.get("text/html"), str):
            # Only here, because few cells need it and it takes long to import.
            from cellblock_kernel.notebook import html_text

            text = html_text.of(bundle["text/html"])
            if text:
                return text
    return text_of(value)


def _call(method: Any, value: Any, **arguments: Any) -> Any:
    try:
        return method(value, **arguments)
    except Exception:
        return None


def _bytes(mime: str, data: Any) -> bytes | None:
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    if isinstance(data, str) and mime.startswith("image/") and mime != "image/svg+xml":
        # A bundle made for JSON contains pictures as base64.
        try:
            return b64decode(data, validate=False)
        except ValueError:
            return None
    if isinstance(data, str):
        return data.encode("utf-8", "replace")
    try:
        return _dumps(data).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return None

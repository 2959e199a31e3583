"""Values as E2B's clients expect them: the MIME types that IPython gives them, tables as `e2b/data`, charts as `e2b/chart`."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from cellblock_kernel.notebook import display as notebook
from cellblock_kernel.outputs import altair, frame, image, plot, registry, rich
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.primitive import EXACT, repr_is_default, text_of

# Tells the host that a value has no text.
_NO_TEXT = "e2b/no-text"


class _Forms:
    """Forms of a value by their MIME types."""

    def __init__(self, forms: dict[str, Any]) -> None:
        self._forms = forms

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self._forms


def use(display: Any) -> None:
    """Shows every value in these forms from here on."""
    registry.register(object, _convert)
    _show_pictures(display)


def _convert(value: Any) -> Any:
    if type(value) is str:
        return repr(value)[1:-1]
    if type(value) in EXACT:
        return value
    if type(value) is notebook.Bundle:
        forms = value._repr_mimebundle_()
        return value if "text/plain" in forms else _Forms({**forms, "text/plain": "", _NO_TEXT: ""})
    if plot.is_figure(value):
        return _figure(value)
    table = frame.table_of(value)
    if table is not None:
        return _table(value)
    if isinstance(value, (list, dict)):
        return _json(value)
    return _picture(value)


def _figure(value: Any) -> Any:
    figure = plot.figure_of(value)
    # Only here, because it takes long to import.
    from cellblock_kernel.e2b import charts

    # Drawn first: ticks have no labels before that.
    forms: dict[str, Any] = {"text/plain": text_of(figure), "image/png": bytes(plot._png(figure))}
    try:
        chart = charts.of_figure(figure)
    except Exception:
        chart = None
    if chart is not None:
        forms["e2b/chart"] = _dumped(chart)
    return _Forms(forms)


def _table(value: Any) -> Any:
    forms: dict[str, Any] = {"text/plain": text_of(value)}
    as_html = getattr(type(value), "_repr_html_", None)
    html = as_html(value) if as_html is not None else None
    if html is not None:
        forms["text/html"] = html
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        forms["e2b/data"] = _dumped({str(name): list(column) for name, column in value.to_dict(orient="list").items()})
    return _Forms(forms) if len(forms) > 1 else forms["text/plain"]


def _json(value: Any) -> Any:
    try:
        text = _dumped(value)
    except (TypeError, ValueError, RecursionError):
        return value
    return _Forms({"text/plain": text_of(value), "application/json": text})


def _picture(value: Any) -> Any:
    if altair.is_chart(value):
        return rich.Bundle(value._repr_mimebundle_()) if hasattr(value, "_repr_mimebundle_") else value
    shown = image.describe(value, None, Limits())
    if shown is None or not shown.blobs:
        return value
    return _Forms({"text/plain": text_of(value), shown.header["mime"]: bytes(shown.blobs[0])})


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(json.loads(json.dumps(value, default=_plain))))


def _finite(value: Any) -> Any:
    """Replaces numbers that JSON does not have by null."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    for method in ("isoformat", "item", "tolist"):
        if hasattr(value, method):
            return getattr(value, method)()
    return text_of(value) if repr_is_default(value) else str(value)


def _show_pictures(display: Any) -> None:
    """Shows pictures of Pillow when they are saved under a name, as E2B's kernel does."""
    pillow: Any = sys.modules.get("PIL.Image")
    if pillow is None or hasattr(pillow.Image.save, "e2b"):
        return
    save = pillow.Image.save

    def save_and_show(image: Any, fp: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(fp, str):
            display(image)
        save(image, fp, *arguments, **options)

    save_and_show.e2b = True  # type: ignore[attr-defined]
    pillow.Image.save = save_and_show

"""Plotly figures: the specification that browsers draw, a page that draws it, a text with their series, and a picture.

Plotly draws in a browser, which a sandbox does not have. The picture is approximate: matplotlib draws it from the
specification, as far as it can.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs.limits import Limits, cut, many
from cellblock_kernel.outputs.output import Output

MIME = "application/vnd.plotly.v1+json"

_TRACES = 30
# Where a trace has its values: the first one that is there counts.
_VALUES = ("x", "y", "z", "values", "labels", "r", "lat", "locations", "lon", "open")
_dumps = json.dumps


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a figure."""
    if not is_figure(value):
        return None
    spec = specification(value)
    blobs: list[Buffer] = [_dumps(spec, allow_nan=False).encode("utf-8", "replace")]
    mimes = [MIME]
    try:
        # Plotly itself is 5 MB, so the page loads it where it is shown.
        blobs.append(value.to_html(include_plotlyjs="cdn").encode("utf-8", "replace"))
        mimes.append("text/html")
    except Exception:
        pass  # the specification is enough
    # Only here, because few cells need it.
    from cellblock_kernel.outputs.plotly import page

    try:
        blobs.append(page.draw(spec))
        mimes.append("image/png")
        drawn = "approximate picture, drawn from its data by matplotlib"
    except page.NotDrawn as error:
        drawn = f"no picture: {error}"
    shown, truncated = cut(text(spec, drawn), limits.text_chars)
    header: dict[str, Any] = {"type": "rich", "name": name, "mimes": mimes, "text": shown}
    if truncated:
        header["truncated"] = True
    return Output(header, blobs)


def is_figure(value: Any) -> bool:
    """Returns whether a value is a figure of Plotly."""
    module: Any = sys.modules.get("plotly.basedatatypes")
    return module is not None and isinstance(value, module.BaseFigure)


def specification(figure: Any) -> dict[str, Any]:
    """Returns the specification with plain lists, which every version of Plotly reads."""
    plain: dict[str, Any] = _plain(json.loads(figure.to_json()))
    return plain


def _plain(value: Any) -> Any:
    """Replaces arrays in base64 by lists, and numbers that JSON lacks by null."""
    if isinstance(value, dict):
        if isinstance(value.get("bdata"), str) and isinstance(value.get("dtype"), str):
            return _plain(_array(value))
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _array(packed: dict[str, Any]) -> Any:
    import numpy

    found = numpy.frombuffer(b64decode(packed["bdata"]), dtype=numpy.dtype(packed["dtype"]))
    shape = packed.get("shape")
    if shape is not None:
        found = found.reshape([int(size) for size in str(shape).split(",")])
    return found.tolist()


def text(spec: dict[str, Any], drawn: str) -> str:
    """Describes a specification for readers without a browser, and says how it was drawn."""
    traces = [trace for trace in spec.get("data") or [] if isinstance(trace, dict)]
    layout = spec.get("layout") or {}
    title = _title(layout.get("title"))
    lines = [f"Plotly figure{f' “{title}”' if title else ''} ({drawn})"]
    axes = [f"{key[0]} “{found}”" for key in ("xaxis", "yaxis") if (found := _title((layout.get(key) or {}).get("title")))]
    if axes:
        lines.append(f"- axes: {', '.join(axes)}")
    lines += [f"- {_trace(trace)}" for trace in traces[:_TRACES]]
    if len(traces) > _TRACES:
        lines.append(f"- … and {many(len(traces) - _TRACES, 'more trace')}")
    return "\n".join(lines)


def _title(title: Any) -> str:
    if isinstance(title, dict):
        title = title.get("text")
    return " ".join(title.split()) if isinstance(title, str) else ""


def _trace(trace: dict[str, Any]) -> str:
    name = trace.get("name")
    start = str(trace.get("type") or "scatter") + (f" “{name}”" if isinstance(name, str) and name else "")
    counted = next((trace[key] for key in _VALUES if isinstance(trace.get(key), list)), None)
    if counted is None:
        return start
    if counted and isinstance(counted[0], list):
        return f"{start}: {len(counted)} × {len(counted[0])} values"
    parts = [many(len(counted), "point")]
    parts += [part for key in ("x", "y", "values") if (part := _range(key, trace.get(key)))]
    return f"{start}: {', '.join(parts)}"


def _range(key: str, values: Any) -> str:
    if not isinstance(values, list):
        return ""
    known = [value for value in values if value is not None and not isinstance(value, (list, dict))]
    if not known:
        return ""
    if all(isinstance(value, (int, float)) for value in known):
        return f"{key} between {min(known):g} and {max(known):g}"
    return f"{key} from {str(known[0])[:60]} to {str(known[-1])[:60]}"

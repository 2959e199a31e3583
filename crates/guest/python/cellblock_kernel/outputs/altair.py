"""Altair charts and Vega-Lite specifications: the specification, and a picture where vl-convert can make one."""

from __future__ import annotations

import json
import sys
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs import drawing, plot, series
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output

_MAX_SPEC = 3 * 1024 * 1024
_dumps = json.dumps


class InvalidChart(ValueError):
    """A chart that Vega-Lite cannot draw."""


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a chart, or a dict with the `$schema` of Vega-Lite."""
    if isinstance(value, dict):
        schema = value.get("$schema")
        if not isinstance(schema, str) or "vega-lite" not in schema:
            return None
        return _output(value, "vega-lite", name)
    return _output(_spec(value, sys.modules["altair"]), "altair", name) if is_chart(value) else None


def is_chart(value: Any) -> bool:
    """Returns whether a value is a chart of Altair."""
    altair: Any = sys.modules.get("altair")
    return altair is not None and isinstance(value, getattr(altair, "TopLevelMixin", ()))


def _spec(chart: Any, altair: Any) -> dict[str, Any]:
    try:
        spec: dict[str, Any] = chart.to_dict()
    except altair.MaxRowsError as error:
        raise InvalidChart(
            "the chart's data has more rows than Altair puts into a chart (5,000): aggregate or sample it before charting, "
            "or call alt.data_transformers.disable_max_rows() first"
        ) from error
    except Exception as error:
        if type(error).__name__ == "SchemaValidationError":
            raise _invalid(error) from None
        raise
    return spec


def _invalid(error: BaseException) -> InvalidChart:
    text = " ".join(str(error).split())
    return InvalidChart(f"invalid Altair/Vega-Lite specification: {text[:2000]}")


def _output(spec: dict[str, Any], library: str, name: str | None) -> Output:
    header: dict[str, Any] = {
        "type": "figure",
        "name": name or plot.next_name(),
        "library": library,
        "title": _title(spec.get("title")),
        "axes": [],
        "series": series.of_spec(spec),
    }
    try:
        text = _dumps(spec, allow_nan=False, default=str)
    except ValueError as error:
        if isinstance(error, UnicodeError):
            raise
        text = _dumps(_finite(spec), allow_nan=False, default=str)
    if len(text) <= _MAX_SPEC:
        header["spec"] = json.loads(text)
    else:
        header["truncated"] = True
    blobs: list[Buffer] = []
    if _remote(spec):
        note = "the chart's data is at a URL, which the sandbox can not load: bind the data as an input and chart that"
        header["note"] = note
        print(f"chart without a picture: {note}", file=sys.stderr)
    else:
        try:
            png = _png(text)
        except drawing.NotDrawn as error:
            header["note"] = f"no picture: {error}"
        else:
            header["width"], header["height"] = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
            blobs = [png]
    return Output(header, blobs)


def _png(spec: str) -> bytes:
    altair: Any = sys.modules.get("altair")
    numbers = getattr(altair, "SCHEMA_VERSION", "").lstrip("v").split(".")
    known = len(numbers) >= 2 and f"/v{numbers[0]}" in spec
    try:
        return drawing.draw(spec, version=".".join(numbers[:2]) if known else None)
    except drawing.NotDrawn as error:
        if error.invalid:
            raise _invalid(error) from None
        raise


def _remote(spec: Any) -> bool:
    """Returns whether any data of a specification is at a URL."""
    waiting = [spec]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            data = part.get("data")
            if isinstance(data, dict) and isinstance(data.get("url"), str) and not data["url"].startswith("data:"):
                return True
            waiting += [value for key, value in part.items() if key not in ("values", "datasets")]
        elif isinstance(part, list):
            waiting += part
    return False


def _finite(value: Any) -> Any:
    """Replaces numbers that JSON lacks with null."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))) else value


def _title(title: Any) -> str | None:
    if isinstance(title, dict):
        title = title.get("text")
    if isinstance(title, list):
        title = " ".join(map(str, title))
    return title if isinstance(title, str) else None

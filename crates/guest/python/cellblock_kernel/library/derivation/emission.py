"""`save_figure()` and `render_chart()`: a cell's emissions in addition to its result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.library import broker, findings
from cellblock_kernel.library.derivation.plain import Plain
from cellblock_kernel.outputs import drawing, plot, registry
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.plot import Screen
from cellblock_kernel.outputs.primitive import qualified, with_article

# Maximum length of a note in characters.
_NOTE = 300


class _Kernel:
    """The kernel that emits."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self.mine: Callable[[], bool] = bool
        self.limits = Limits()


_kernel = _Kernel()


def use(screen: Screen, mine: Callable[[], bool], limits: Limits) -> None:
    """Sets the kernel whose cells emit."""
    _kernel.screen, _kernel.mine, _kernel.limits = screen, mine, limits


def limits() -> Limits:
    """Returns the limits of a cell."""
    return _kernel.limits


def emit(output: Output) -> None:
    """Sends an output of the running cell."""
    if _kernel.screen is None or not _kernel.mine():
        raise RuntimeError("results, figures and charts must be emitted by the cell's main process: return them to it first")
    if output.size > _kernel.limits.output_bytes:
        kind, limit = output.header["type"], _kernel.limits.output_bytes
        raise ValueError(f"the {kind} has {output.size} bytes, more than the limit of {limit} per output: make it smaller")
    _kernel.screen.emit(output)


def save_figure(alt: str, title: str | None = None, fig: Any = None) -> None:
    """Emits a figure as an image artifact, and closes it.

    `alt` describes what it shows. `fig` is a figure or axes of matplotlib or seaborn, or an Altair chart; by default the
    current figure.
    """
    _texts("save_figure", alt, title)
    if fig is None:
        fig = _current_figure()
    if plot.is_blank(fig):
        raise ValueError("save_figure: the figure is empty: draw on it before saving it")
    output = registry.describe(fig, None, _kernel.limits)
    if output.header.get("type") != "figure":
        raise TypeError(f"save_figure: fig is {with_article(qualified(fig))}: pass a matplotlib figure or axes, or an Altair chart")
    if not output.blobs:
        raise ValueError(f"save_figure: the figure could not be drawn: {output.header.get('note') or 'it has no picture'}")
    output.header["alt"] = alt.strip()
    if title is not None:
        output.header["title"] = title
    emit(output)
    plot.discard(fig)


def render_chart(spec: Mapping[str, Any], data: Any, title: str | None = None, *, alt: str | None = None) -> None:
    """Emits a chart as data, and as a picture where the image can draw one.

    `spec` names the type of chart and the keys of `data` that it shows, such as
    `{"type": "line", "xKey": "date", "series": [{"key": "price"}]}`. `data` is a list of flat dicts, a dict of columns, or a data
    frame, whose index becomes a column unless it only counts from 0.
    """
    _texts("render_chart", alt if alt is not None else "-", title)
    if not isinstance(spec, Mapping):
        example = "{'type': 'line', 'xKey': 'date', 'series': [{'key': 'price'}]}"
        raise TypeError(f"render_chart: spec is {with_article(qualified(spec))}: pass a dict such as {example}")
    plain = Plain("spec")
    described = plain.value(dict(spec))
    rows = _rows(data)
    encoded = json.dumps(rows, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    try:
        _, drawn = broker.call("check_chart", {"spec": described, "title": title, "alt": alt}, [encoded])
    except broker.BrokerError as error:
        raise ValueError(f"render_chart: {error}") from None
    header: dict[str, Any] = {"type": "chart", "title": title, "alt": alt, "spec": described, "rows": len(rows)}
    blobs: list[Buffer] = [encoded]
    try:
        blobs += [drawing.draw(specification.decode()) for specification in drawn[:1]]
    except drawing.NotDrawn as error:
        # A chart consists of its data, which a reader's client can still draw.
        header["note"] = f"no picture: {error}"[:_NOTE]
    emit(Output(header, blobs))


def _texts(helper: str, alt: Any, title: Any) -> None:
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"{helper}: alt says in words what is shown, and has to be a text that is not empty; it is {alt!r:.100}")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"{helper}: title has to be a text or None; it is {with_article(qualified(title))}")


def _current_figure() -> Any:
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums():
        raise ValueError("save_figure: no figure is open: draw one with matplotlib first, or pass it as `fig`")
    return pyplot.gcf()


def _rows(data: Any) -> list[dict[str, Any]]:
    plain = Plain("data")
    rows = plain.value(data)
    if isinstance(rows, dict):
        rows = _transposed(rows)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        found = with_article(qualified(data))
        raise TypeError(f"render_chart: data is {found} that holds no rows: pass a list of dicts or a data frame")
    for number, row in enumerate(rows):
        for key, value in row.items():
            if isinstance(value, bool):
                row[key] = int(value)
            elif isinstance(value, (list, dict)):
                kind = type(value).__name__
                raise ValueError(f"render_chart: data[{number}][{key!r}] is a {kind}: rows hold numbers, text and null only")
    if plain.infinite:
        findings.add(
            "infinite_values_to_null",
            f"{plain.infinite} infinite values of a chart are null, the first at {plain.first_infinite}: they are not drawn",
            details={"count": plain.infinite, "first": plain.first_infinite},
        )
    return rows


def _transposed(columns: dict[str, Any]) -> list[dict[str, Any]]:
    lengths = {key: len(value) for key, value in columns.items() if isinstance(value, list)}
    if len(lengths) < len(columns) or len(set(lengths.values())) > 1:
        raise ValueError(
            f"render_chart: data is a dict whose values are not lists of one length ({lengths}): "
            "pass rows, or columns of one length"
        )
    return [dict(zip(columns, row)) for row in zip(*columns.values())]

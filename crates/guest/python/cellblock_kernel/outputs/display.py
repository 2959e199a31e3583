"""`display()`: sends values as typed outputs while a cell runs, within the cell's limits."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.cell.channel import Channel, Oversize
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.notebook import display as notebook
from cellblock_kernel.outputs import plot, registry
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.primitive import text_of

_print = print
_NAME = 200


class Display:
    """Shows values of any type; bound in every namespace as `display`."""

    def __init__(self, channel: Channel, streams: Streams, limits: Limits) -> None:
        self._channel = channel
        self._streams = streams
        self._limits = limits
        self._cell: int | None = None
        self._index = 0
        self.dropped = 0

    def __repr__(self) -> str:
        return "<function display(*values, name=None)>"

    def __call__(
        self,
        *values: Any,
        name: str | None = None,
        raw: bool = False,
        display_id: Any = None,
        include: Any = None,
        exclude: Any = None,
        metadata: Any = None,
        transient: Any = None,
        clear: bool = False,
    ) -> Any:
        """Shows each value as a separate output. All options except the name are IPython's."""
        for value in values:
            shown = notebook.Bundle(value) if raw and isinstance(value, dict) else value
            self.show(shown, None if name is None else str(name)[:_NAME])
        return notebook.DisplayHandle(None if display_id is True else str(display_id)) if display_id else None

    def begin(self, cell: int) -> None:
        """Starts to count the outputs of a cell."""
        self._cell = cell
        self._index = 0
        self.dropped = 0

    def show(self, value: Any, name: str | None = None, hold: bool = False) -> None:
        """Shows one value; outside a running cell, and in a forked child, as text on stdout."""
        if self._cell is None or not self._channel.mine:
            _print(text_of(value))
            return
        if self._index >= self._limits.outputs:
            self.dropped += 1
            return
        self._emit(registry.describe(value, name, self._limits), False, hold)

    def echo(self, value: Any, name: str | None, hold: bool = False) -> None:
        """Shows the value of a trailing expression, unless it is just the return value of a plotting call. With
        `hold`, it is sent with what comes next."""
        if value is not None and not plot.is_noise(value):
            self.show(value, name, hold)

    def emit(self, output: Output) -> None:
        """Sends an output within the cell's limits."""
        self._emit(output, False)

    def fail(self, output: Output) -> None:
        """Sends the exception that ends a cell, whatever the limits."""
        self._emit(output, True)

    def _emit(self, output: Output, always: bool, hold: bool = False) -> None:
        if output.blobs and output.size > self._limits.output_bytes:
            output.blobs = []
            output.header["truncated"] = True
            if "mimes" in output.header:
                output.header["mimes"] = []
        self._streams.settle()
        self._channel.shield()
        try:
            with self._channel.lock:
                if self._cell is None:
                    return
                if self._index >= self._limits.outputs and not always:
                    self.dropped += 1
                    return
                header = {"type": "output", "cell": self._cell, "index": self._index, "output": output.header}
                try:
                    self._channel.send_locked(header, output.blobs, hold)
                except Oversize as error:
                    header = {**header, "output": _left_out(output, error)}
                    header.pop("blobs", None)
                    self._channel.send_locked(header)
                self._index += 1
        finally:
            self._channel.unshield()

    def end(self, header: dict[str, Any]) -> None:
        """Sends the `done` of a cell; values that threads show afterward are not outputs."""
        self._streams.flush()
        header["outputs_dropped"] = self.dropped
        self._channel.shield()
        try:
            with self._channel.lock:
                self._cell = None
                try:
                    self._channel.send_locked(header)
                except Oversize as error:
                    kept = ("type", "cell", "outcome", "duration_us", "outputs_dropped")
                    short = {key: header[key] for key in kept}
                    self._channel.send_locked({**short, "error": {"type": "Oversize", "message": str(error)}})
        finally:
            self._channel.unshield()


def _left_out(output: Output, error: Oversize) -> dict[str, Any]:
    kind = output.header["type"]
    text = f"<{kind} left out: {error}>"
    return {"type": "primitive", "name": None, "value": text, "python_type": "str", "truncated": True}

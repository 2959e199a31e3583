"""`display()`: sends values as typed outputs while a cell runs, within the cell's limits."""

from __future__ import annotations

import os
from typing import Any

from cellblock_kernel.cell.channel import Channel, Oversize
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.library.broker import Broker
from cellblock_kernel.notebook import display as notebook
from cellblock_kernel.outputs import plot, registry
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.primitive import text_of

_print = print
_urandom = os.urandom
# Characters of a name, and of the id of a display.
_NAME = 200
# Outputs of a cell that replace others and are sent at once. Of further ones, those that are shown at its end are sent then.
_REPAINTS = 4000


class Display:
    """Shows values of any type; bound in every namespace as `display`."""

    def __init__(self, channel: Channel, broker: Broker, streams: Streams, limits: Limits) -> None:
        self._channel = channel
        self._broker = broker
        self._streams = streams
        self._limits = limits
        self._cell: int | None = None
        self._index = 0
        self.dropped = 0
        self._forget()

    def _forget(self) -> None:
        # Number of outputs that are shown, and the ids among them.
        self._shown = 0
        self._ids: set[str] = set()
        # Whether the next output clears those before it, and whether any were cleared.
        self._waits = False
        self._cleared = False
        self._repaints = 0
        self._held: list[tuple[Output, str | None]] = []

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
        update: bool = False,
    ) -> Any:
        """Shows each value as a separate output. All options except the name are IPython's."""
        if display_id is None and isinstance(transient, dict):
            display_id = transient.get("display_id")
        given = display_id is not None and display_id is not False
        key = (_urandom(16).hex() if display_id is True else str(display_id)[:_NAME]) if given else None
        if update and key is None:
            raise TypeError("display(update=True) needs the display_id of what it replaces")
        if clear:
            self.clear(wait=True)
        for value in values:
            shown = notebook.Bundle(value) if raw and isinstance(value, dict) else value
            self.show(shown, None if name is None else str(name)[:_NAME], key=key, update=update)
        return notebook.DisplayHandle(key) if key is not None and not update else None

    def begin(self, cell: int) -> None:
        """Starts to count the outputs of a cell."""
        self._cell = cell
        self._index = 0
        self.dropped = 0
        self._forget()

    def show(self, value: Any, name: str | None = None, hold: bool = False, key: str | None = None, update: bool = False) -> None:
        """Shows one value; outside a running cell, and in a forked child, as text on stdout. With `update`, it replaces
        what has the same key."""
        if self._cell is None or not self._channel.mine:
            _print(text_of(value))
            return
        if not self._has_room(key, update):
            self.dropped += 1
            return
        self._emit(registry.describe(value, name, self._limits), False, hold, key, update)

    def _has_room(self, key: str | None, update: bool) -> bool:
        return self._waits or self._shown < self._limits.outputs or (update and key in self._ids)

    def clear(self, wait: bool = False) -> None:
        """Removes what the cell has shown and printed: now, or when the next output comes."""
        if self._cell is None or not self._channel.mine:
            return
        self._streams.settle()
        # The answer comes when the host has read what was printed before, and can tell it from what is printed next.
        self._broker.call("clear", {"wait": bool(wait)})
        with self._channel.lock:
            self._waits = True
            if not wait:
                self._empty()

    def _empty(self) -> None:
        if self._waits:
            self._waits, self._cleared, self._shown = False, True, 0
            self._ids.clear()
            self._held.clear()

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

    def _emit(self, output: Output, always: bool, hold: bool = False, key: str | None = None, update: bool = False) -> None:
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
                if not self._has_room(key, update) and not always:
                    self.dropped += 1
                    return
                self._empty()
                if not (update and key in self._ids):
                    self._shown += 1
                if key is not None:
                    self._ids.add(key)
                if (update or self._cleared) and not always:
                    self._repaints += 1
                    if self._repaints > _REPAINTS:
                        self._keep(output, key)
                        return
                self._send_held()
                self._send(output, hold, key, update)
        finally:
            self._channel.unshield()

    def _keep(self, output: Output, key: str | None) -> None:
        """Keeps an output for the cell's end, in place of one with the same key."""
        if key is not None:
            self._held = [held for held in self._held if held[1] != key]
        self._held.append((output, key))

    def _send_held(self) -> None:
        held, self._held = self._held, []
        for output, key in held:
            self._send(output, False, key, key is not None)

    def _send(self, output: Output, hold: bool, key: str | None, update: bool) -> None:
        header: dict[str, Any] = {"type": "output", "cell": self._cell, "index": self._index, "output": output.header}
        if key is not None:
            header["display_id"] = key
            header["update"] = update
        try:
            self._channel.send_locked(header, output.blobs, hold)
        except Oversize as error:
            header = {**header, "output": _left_out(output, error)}
            header.pop("blobs", None)
            self._channel.send_locked(header)
        self._index += 1

    def end(self, header: dict[str, Any]) -> None:
        """Sends the `done` of a cell; values that threads show afterward are not outputs."""
        self._streams.flush()
        header["outputs_dropped"] = self.dropped
        self._channel.shield()
        try:
            with self._channel.lock:
                self._send_held()
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

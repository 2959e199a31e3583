"""Calls from code in the sandbox to its host: connectors and datasets."""

from threading import current_thread, main_thread
from typing import Any

from cellblock_kernel.cell.channel import Buffer, Channel


class BrokerError(RuntimeError):
    """The host rejected or failed a call."""

    # Tracebacks show this name.
    __module__ = "cellblock_kernel.broker"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Broker:
    """Sends calls and waits for their answers, on the main thread only: answers arrive on the channel of the
    cells."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._next = 0

    def call(self, method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
        """Calls the host and waits for the answer; an interrupt ends the wait."""
        if current_thread() is not main_thread() or not self._channel.mine:
            raise RuntimeError("connectors and datasets can be used from the cell's main thread only")
        self._next += 1
        number = self._next
        self._channel.send({"type": "call", "call": number, "method": method, "params": params}, blobs)
        while True:
            self._channel.wait()
            self._channel.shield()
            try:
                answer, attached = self._channel.receive()
            finally:
                self._channel.unshield()
            if answer.get("type") == "answer" and answer.get("call") == number:
                error = answer.get("error")
                if error is not None:
                    raise BrokerError(str(error.get("code")), str(error.get("message")))
                return answer.get("value"), attached


_current: Broker | None = None


def use(broker: Broker) -> None:
    """Sets the broker that `call` uses."""
    global _current
    _current = broker


def call(method: str, params: Any, blobs: list[Buffer] | None = None) -> tuple[Any, list[bytes]]:
    """Calls the host through the kernel's broker; returns its value and blobs, or raises a `BrokerError`."""
    if _current is None:
        raise RuntimeError("the host can only be called from a kernel")
    return _current.call(method, params, blobs)

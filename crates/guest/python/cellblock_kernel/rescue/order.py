"""Orders to a copy of the kernel: frames over a socket, with descriptors attached."""

from __future__ import annotations

import _socket
import os
import select
from collections.abc import Callable
from typing import Any

from cellblock_kernel.cell.channel import decode, frame

_MAX_MESSAGE = 4096

_getpid = os.getpid


def receive(listener: _socket.socket, count: int) -> tuple[dict[str, Any], list[int]] | None:
    """Receives a message with this number of descriptors; nothing if the other end is closed."""
    # Another process of the sandbox may have made the shared socket non-blocking.
    wait = select.poll()
    wait.register(listener.fileno(), select.POLLIN)
    received, handed = b"", list[int]()
    while len(received) < 8 or len(received) < 4 + int.from_bytes(received[:4], "big"):
        wait.poll()
        try:
            part, ancillary, _, _ = listener.recvmsg(
                _MAX_MESSAGE, _socket.CMSG_SPACE(4 * count), _socket.MSG_CMSG_CLOEXEC | _socket.MSG_DONTWAIT
            )
        except BlockingIOError:
            continue
        if not part:
            return None
        received += part
        for level, kind, content in ancillary:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                handed += memoryview(content[: len(content) // 4 * 4]).cast("i")
    return decode(received[8:]), handed


def _tell(listener: _socket.socket, cell: int) -> None:
    """Tells the host which process waits, and on which socket."""
    listener.sendall(frame({"type": "kept", "cell": cell, "pid": _getpid(), "socket": listener.fileno()}))


def await_order(
    descriptor: int, count: int, prepare: Callable[[], None] | None = None, announce: bool = False
) -> tuple[list[int], bool | None] | None:
    """Receives `take_over` with this number of descriptors, and its `reseed`; nothing if the host has closed the channel.

    `prepare` is what to do before a move to another sandbox, and `announce` whether the host does not know this process yet.
    """
    listener = _socket.socket(fileno=descriptor)
    if announce:
        _tell(listener, 0)
    while True:
        received = receive(listener, count)
        if received is None:
            return None
        message, handed = received
        if message.get("type") != "checkpoint":
            break
        # The host asks whether this process is still there, and with a number whether it is ready to be moved.
        if message["cell"] and prepare is not None:
            prepare()
        _tell(listener, message["cell"])
    listener.detach()
    if message.get("type") != "take_over" or len(handed) != count:
        return None
    return handed, message.get("reseed")

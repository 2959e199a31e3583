"""Runs throw-away cells through the whole kernel, so that the first real one finds code specialised and memory its own."""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

from cellblock_kernel.channel import Channel
from cellblock_kernel.interrupt import Gate

_CELLS = ("1 + 1", "import sys", "def f(x):\n    return x\nf(2)", "print(end='')", "[][0]")


def rehearse(answer: Callable[[Channel, Gate], None], times: int) -> None:
    """Lets a kernel of its own answer some cells; everything that it changes in the process is put back."""
    ours, theirs = socket.socketpair()
    messages = [{"type": "configure", "prelude": ["analysis", "documents"], "guard": "off", "limits": {}, "sys_path": []}]
    for number in range(times * len(_CELLS)):
        code = _CELLS[number % len(_CELLS)]
        messages.append(
            {"type": "execute", "cell": number, "code": code, "name": "<cell>", "mode": "exec", "echo": True, "store": True}
        )
    for message in messages:
        body = json.dumps(message).encode()
        ours.sendall(struct.pack(">II", 4 + len(body), len(body)) + body)
    ours.shutdown(socket.SHUT_WR)
    module = sys
    kept = {name: getattr(module, name) for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")}
    first, path, environment = sys.modules["__main__"], list(sys.path), dict(os.environ)
    handler = signal.getsignal(signal.SIGINT)
    try:
        answer(Channel(theirs.detach(), Gate()), Gate())
    finally:
        for name, stream in kept.items():
            setattr(module, name, stream)
        sys.modules["__main__"] = first
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, handler)
        ours.close()

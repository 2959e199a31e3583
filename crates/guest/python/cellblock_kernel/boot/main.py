"""The kernel's loop, for a child that the template forked or a separate process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from typing import Any

from cellblock_kernel.cell import interactive
from cellblock_kernel.cell.channel import BrokenFrame, Channel, Closed
from cellblock_kernel.cell.interrupt import Gate
from cellblock_kernel.cell.kernel import Kernel
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.library import broker
from cellblock_kernel.outputs import showing
from cellblock_kernel.rescue.checkpoint import Checkpoints
from cellblock_kernel.rescue.standby import Standby

GENERATION = 6

Message = tuple[dict[str, Any], list[bytes]]

_getpid, _mask = os.getpid, pthread_sigmask
_version = "{}.{}.{}".format(*sys.version_info)

# Time that a new kernel waits for its first message before it starts to warm up.
_IDLE_MS = 5
# The same in a machine that was just restored, whose host still connects when somebody waits for it.
_RESTORED_IDLE_MS = 100


def serve(channel_fd: int, spare_fd: int | None = None, refresh: Callable[[], None] | None = None, again: bool = False) -> None:
    """Sends hello and answers messages until the host closes the channel. The spare channel is for a standby.

    `refresh` runs when the first message arrives: a snapshot may have been taken until then, and every machine that is restored
    from it needs generators of its own. `again` says whether it is worth to rehearse again in a restored machine.

    Descriptors 1 and 2 are pipes to the host, 0 is empty. Returns when the channel is closed; the caller then leaves by `os._exit`.
    """
    gate = Gate()
    gate.install()
    channel = Channel(channel_fd, gate)
    _hello(channel)
    _rehearse(channel, gate, _IDLE_MS)
    if refresh is not None:
        channel.wait()
        refresh()
    first = None
    # Received here only where it is there already: the kernel prepares for one that comes later.
    if again and (refresh is not None or channel.ready(0)):
        try:
            first = channel.receive()
        except Closed:
            return
        if first[0]["type"] == "restored":
            # What was rehearsed before is in the snapshot, but not in memory.
            _rehearse(channel, gate, _IDLE_MS if refresh is None else _RESTORED_IDLE_MS)
    answer(channel, gate, spare_fd, first)


def _rehearse(channel: Channel, gate: Gate, idle_ms: int) -> None:
    """Touches the memory that the first cell will use, unless a request comes in that time. One that comes later waits for at
    most one throwaway cell."""
    if channel.ready(idle_ms):
        return
    from cellblock_kernel.boot import rehearsal

    # An interrupt of that request must not arrive here.
    before = _mask(SIG_BLOCK, {SIGINT})
    rehearsal.rehearse(answer, rehearsal.CELLS, lambda: channel.ready(0))
    gate.install()
    _mask(SIG_SETMASK, before)


def _hello(channel: Channel) -> None:
    channel.send({"type": "hello", "generation": GENERATION, "pid": _getpid(), "python": _version})


def answer(channel: Channel, gate: Gate, spare_fd: int | None = None, first: Message | None = None) -> None:
    """Answers messages until the channel is closed; the first one may have been received already."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    if "" not in sys.path:
        sys.path.insert(0, "")
    interactive.install()
    showing.install()
    streams = Streams()
    standby = Standby(channel, gate, streams, spare_fd, lambda: _hello(channel))
    checkpoints = Checkpoints(channel, standby)
    kernel = Kernel(channel, gate, streams, standby)
    broker.use(kernel.broker)
    try:
        while True:
            checkpoints.settle()
            while standby.settle():
                checkpoints.settle()
            message, blobs = first or kernel.broker.receive()
            first = None
            if message["type"] == "checkpoint":
                checkpoints.keep(message["cell"])
            elif message["type"] != "restored":
                kernel.handle(message, blobs)
    except (Closed, OSError):
        streams.flush()
    except BrokenFrame as error:
        streams.flush()
        raise SystemExit(f"cellblock kernel: the host sent {error}") from None
    finally:
        streams.release()

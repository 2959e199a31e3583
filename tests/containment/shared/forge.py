"""Forged frames: bytes that pretend to come from the kernel, written past it to its channel."""

import json
import os
import struct
import sys
from typing import Any

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no kernel whose frames could be forged")

CHANNEL = 3
# The cell that readies a session is its first, so a probe is always the second.
CELL = 2


def kernel() -> int:
    """Answers the kernel's process number."""
    return os.getpid()


def frame(header: dict[str, Any], *blobs: bytes) -> bytes:
    """Makes a frame that keeps the protocol."""
    if blobs:
        header = header | {"blobs": [len(blob) for blob in blobs]}
    head = json.dumps(header).encode()
    body = b"".join(blobs)
    return struct.pack(">II", 4 + len(head) + len(body), len(head)) + head + body


def output(shown: dict[str, Any], *blobs: bytes, index: int = 0) -> bytes:
    """Makes a frame that shows something."""
    return frame({"type": "output", "cell": CELL, "index": index, "output": shown}, *blobs)


def done(outcome: str = "completed") -> bytes:
    """Makes a frame that ends the cell."""
    return frame({"type": "done", "cell": CELL, "outcome": outcome, "duration_us": 1, "outputs_dropped": 0, "rejections": []})


def send(content: bytes) -> None:
    """Writes all of it to the channel."""
    view = memoryview(content)
    while view:
        view = view[os.write(CHANNEL, view) :]

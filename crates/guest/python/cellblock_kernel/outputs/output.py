"""An output in the form in which it is sent."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.cell.channel import Buffer


class Output:
    """The JSON of an output and its blobs."""

    __slots__ = ("blobs", "header")

    def __init__(self, header: dict[str, Any], blobs: list[Buffer] | None = None) -> None:
        self.header = header
        self.blobs: list[Buffer] = [] if blobs is None else blobs

    @property
    def size(self) -> int:
        """Returns the number of bytes of the blobs."""
        return sum(memoryview(blob).nbytes for blob in self.blobs)

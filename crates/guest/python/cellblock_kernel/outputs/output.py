"""An output in the form in which it is sent."""

from dataclasses import dataclass, field
from typing import Any

from cellblock_kernel.cell.channel import Buffer


@dataclass(slots=True)
class Output:
    """The JSON of an output and its blobs."""

    header: dict[str, Any]
    blobs: list[Buffer] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Returns the number of bytes of the blobs."""
        return sum(memoryview(blob).nbytes for blob in self.blobs)

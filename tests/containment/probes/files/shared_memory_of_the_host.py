"""Code cannot read shared memory of the host."""
# covers: known failure: a shared /dev/shm

from pathlib import Path

from probe import bait, holds_if, reached

with holds_if(OSError):
    reached(f"{len(Path(bait.shared).read_bytes())} bytes")

"""Code cannot open the descriptors of another process."""
# covers: known failure: /proc/PID/fd

from pathlib import Path

from probe import bait, holds_if, reached

with holds_if(OSError), Path(f"/proc/{bait.bystander}/fd/0").open("rb") as file:
    reached(file)

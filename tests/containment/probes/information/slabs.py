"""Code does not see what the kernel keeps in memory."""
# covers: kernel surface of container escapes; exploit preparation

from pathlib import Path

from probe import held, holds_if, reached

with holds_if(OSError):
    if Path("/proc/slabinfo").read_text() or Path("/proc/vmallocinfo").read_text():
        reached("the kernel's allocations")
    held("the tables are empty")

"""Code cannot attach to a System V memory segment of the host."""
# covers: known failure: a shared IPC namespace

from probe import bait, decide, syscall

decide(syscall(30, bait.segment, 0, 0o10000), "attached")

"""Code cannot find a System V message queue of the host."""
# covers: known failure: a shared IPC namespace

from probe import bait, decide, syscall

decide(syscall(68, bait.key, 0), "found")

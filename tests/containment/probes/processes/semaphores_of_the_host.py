"""Code cannot find a System V semaphore of the host."""
# covers: known failure: a shared IPC namespace

from probe import bait, decide, syscall

decide(syscall(64, bait.key, 1, 0), "found")

"""Code runs under a system call filter."""
# covers: known failure: a sandbox without seccomp

from pathlib import Path

from probe import held, reached

if "Seccomp:\t2" in Path("/proc/self/status").read_text():
    held("a filter")
reached("no filter")

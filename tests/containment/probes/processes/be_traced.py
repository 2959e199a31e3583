"""Code cannot be traced, not even by itself."""
# covers: kernel surface of container escapes; ptrace

from probe import decide, syscall

PTRACE_TRACEME = 0
decide(syscall(101, PTRACE_TRACEME, 0, 0, 0), "traced")

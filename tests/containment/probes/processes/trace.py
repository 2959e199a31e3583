"""Code cannot attach a debugger to another process."""
# covers: SandboxEval, dangerous operations; tracing

from probe import bait, decide, syscall

PTRACE_SEIZE = 0x4206
decide(syscall(101, PTRACE_SEIZE, bait.bystander, 0, 0), "attached")

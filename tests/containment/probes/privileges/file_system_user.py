"""Code cannot open files as root."""
# covers: SandboxEval, dangerous operations; privilege escalation

from probe import held, reached, syscall

syscall(122, 0)
now = syscall(122, 0)
if now == 0:
    reached("files are opened as root")
held(f"files are opened as {now}")

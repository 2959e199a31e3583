"""Code cannot change how root's privileges work."""
# covers: SandboxEval, dangerous operations; privilege escalation

from probe import decide, syscall

PR_SET_SECUREBITS = 28
decide(syscall(157, PR_SET_SECUREBITS, 0, 0, 0, 0), "PR_SET_SECUREBITS")

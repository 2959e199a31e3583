"""Code cannot allow itself new privileges again."""
# covers: SandboxEval, dangerous operations; set-user-id programs
# uncontained: the flag is not set, so nothing can be taken back

from probe import decide, syscall

PR_SET_NO_NEW_PRIVS = 38
decide(syscall(157, PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "the flag is off")

"""Code cannot hand a capability to programs that it starts."""
# covers: SandboxEval, dangerous operations; privilege escalation

import errno

from probe import decide_by_answer, syscall

PR_CAP_AMBIENT, RAISE = 47, 2
decide_by_answer(syscall(157, PR_CAP_AMBIENT, RAISE, 99, 0, 0), "PR_CAP_AMBIENT", (errno.EPERM,))

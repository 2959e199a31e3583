"""Code cannot drop its system call filter."""
# covers: known failure: a filter that can be replaced
# uncontained: there is no filter that could be dropped

from probe import decide, syscall

PR_SET_SECCOMP, SECCOMP_MODE_DISABLED = 22, 0
decide(syscall(157, PR_SET_SECCOMP, SECCOMP_MODE_DISABLED, 0, 0, 0), "the filter is off")

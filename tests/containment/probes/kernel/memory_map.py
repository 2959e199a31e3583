"""Code cannot rewrite where the kernel believes its memory to be."""
# covers: kernel surface of container escapes; prctl

import errno

from probe import decide_by_answer, syscall

PR_SET_MM = 35
# The last argument must be 0, which is checked before any privilege.
decide_by_answer(syscall(157, PR_SET_MM, 99, 0, 0, 1), "PR_SET_MM", (errno.EPERM,))

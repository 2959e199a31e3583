"""Code cannot take a descriptor out of another process."""
# covers: known failure: pidfd_getfd

import errno

from probe import decide_by_answer, syscall

decide_by_answer(syscall(438, -1, 0, 0), "pidfd_getfd", (errno.EPERM,))

"""Code cannot page out the memory of another process."""
# covers: SandboxEval, dangerous operations; slowing others down

import errno

from probe import decide_by_answer, syscall

decide_by_answer(syscall(440, -1, 0, 0, 0, 0), "process_madvise", (errno.EPERM,))

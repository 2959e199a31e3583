"""Code cannot ask whether a part of a file is in memory, and so what others have read."""
# covers: SandboxEval, information exposure; what others do
# also: without namespaces
# gvisor: not run: gVisor has a cache of its own for each machine

import errno

from probe import decide_by_answer, held, syscall

RWF_NOWAIT = 8
PREADV2, MINCORE = 327, 27
# Wrong arguments: a descriptor that is not open, and an address at which no page begins.
answer = syscall(MINCORE, 1, 1, 0)
if answer != -errno.ENOSYS:
    decide_by_answer(answer, "mincore")
answer = syscall(PREADV2, -1, 0, 0, 0, 0, RWF_NOWAIT)
if answer != -errno.ENOSYS:
    decide_by_answer(answer, "preadv2 with RWF_NOWAIT")
held("both calls seem to be missing")

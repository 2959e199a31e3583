"""A call that is newer than the filter does not reach the kernel."""
# covers: known failure: a filter that lists what is forbidden

from probe import decide_by_answer, syscall

NEVER_ASSIGNED = 4000
decide_by_answer(syscall(NEVER_ASSIGNED, 0), "call 4000")

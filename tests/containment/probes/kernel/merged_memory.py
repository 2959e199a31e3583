"""Code cannot have its pages merged with equal ones of others, which reveals by its timing what those have."""
# covers: kernel surface of container escapes; deduplication of memory
# gvisor: not run: gVisor's memory is never merged, whatever code asks for

from probe import decide_by_answer, syscall

MADVISE, MERGEABLE = 28, 12
# An address at which no page begins.
decide_by_answer(syscall(MADVISE, 1, 4096, MERGEABLE), "madvise with MADV_MERGEABLE")

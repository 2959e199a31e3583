"""Code cannot splice its memory into a pipe."""
# covers: known failure: splicing into read-only pages (dirty pipe)

from probe import decide_by_answer, syscall

decide_by_answer(syscall(278, -1, 0, 0, 0), "vmsplice")

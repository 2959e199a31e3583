"""Code cannot ask for a key of another."""
# covers: known failure: keyrings are shared by containers

from probe import decide_by_answer, syscall

decide_by_answer(syscall(249, 0, 0, 0, 0), "request_key")

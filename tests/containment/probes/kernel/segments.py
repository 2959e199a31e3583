"""Code cannot change its segment table."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

decide_by_answer(syscall(154, 99, 0, 0), "modify_ldt")

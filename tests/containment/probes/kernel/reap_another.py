"""Code cannot free the memory of another process."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

decide_by_answer(syscall(448, -1, 0), "process_mrelease")

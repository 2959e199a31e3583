"""Code cannot move its pages at will."""
# covers: kernel surface of container escapes; NUMA

from probe import decide_by_answer, syscall

decide_by_answer(syscall(279, 0, 0, 0, 0, 0, 99), "move_pages")

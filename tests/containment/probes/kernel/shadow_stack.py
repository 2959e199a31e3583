"""Code cannot map a shadow stack."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

decide_by_answer(syscall(453, 0, 0, 99), "map_shadow_stack")

"""Code cannot copy a mount by the new mount calls."""
# covers: kernel surface of container escapes; mounts

from probe import decide_by_answer, syscall

decide_by_answer(syscall(428, -1, 0, 0), "open_tree")

"""Code cannot move a mount by the new mount calls."""
# covers: kernel surface of container escapes; mounts

from probe import decide_by_answer, syscall

decide_by_answer(syscall(429, -1, 0, -1, 0, 0), "move_mount")

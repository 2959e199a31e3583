"""Code cannot change the attributes of a mount."""
# covers: kernel surface of container escapes; mounts

from probe import decide_by_answer, syscall

decide_by_answer(syscall(442, -1, 0, 0, 0, 0), "mount_setattr")

"""Code cannot open a file system by the new mount calls."""
# covers: kernel surface of container escapes; heap overflow in fsconfig

from probe import decide_by_answer, syscall

decide_by_answer(syscall(430, 0, 0), "fsopen")

"""Code cannot load a library by the oldest call."""
# covers: kernel surface of container escapes; dead calls

from probe import decide_by_answer, syscall

decide_by_answer(syscall(134, 0), "uselib")

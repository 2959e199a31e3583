"""Code cannot give itself one input and output port."""
# covers: kernel surface of container escapes; hardware

from probe import decide_by_answer, syscall

decide_by_answer(syscall(173, -1, 1, 1), "ioperm")

"""Code cannot give itself the machine's input and output ports."""
# covers: kernel surface of container escapes; hardware

from probe import decide_by_answer, syscall

decide_by_answer(syscall(172, 99), "iopl")

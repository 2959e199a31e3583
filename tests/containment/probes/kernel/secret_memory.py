"""Code cannot hide memory from the kernel."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

decide_by_answer(syscall(447, -1), "memfd_secret")

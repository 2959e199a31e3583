"""Code cannot use rings of asynchronous calls, which no filter sees."""
# covers: known failure: io_uring goes past seccomp

import ctypes

from probe import decide, syscall

decide(syscall(425, 1, ctypes.create_string_buffer(120)), "io_uring_setup")

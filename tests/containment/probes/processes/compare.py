"""Code cannot compare kernel objects of processes."""
# covers: kernel surface of container escapes; kcmp

import os

from probe import decide, syscall

decide(syscall(312, os.getpid(), os.getpid(), 0, 1, 2), "kcmp")

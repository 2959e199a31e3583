"""Code cannot mount a file system."""
# covers: SandboxEval, dangerous operations; mounting

import ctypes

from probe import decide, syscall

decide(syscall(165, ctypes.c_char_p(b"none"), ctypes.c_char_p(b"/dev/shm"), ctypes.c_char_p(b"tmpfs"), 0, 0), "mounted")

"""Code cannot make its read-only tree writable."""
# covers: SandboxEval, filesystem manipulation; remounting

import ctypes

from probe import decide, syscall

MS_REMOUNT, MS_BIND = 32, 4096
decide(syscall(165, 0, ctypes.c_char_p(b"/"), 0, MS_REMOUNT | MS_BIND, 0), "remounted")

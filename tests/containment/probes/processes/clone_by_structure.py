"""Code cannot start a process by the call whose flags a filter does not see."""
# covers: known failure: clone3 goes past seccomp

import ctypes
import os
import struct

from probe import decide, syscall

CLONE_NEWUSER, SIGCHLD = 0x10000000, 17
arguments = ctypes.create_string_buffer(struct.pack("<8Q", CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0))
result = syscall(435, arguments, 64)
if result == 0:
    os._exit(0)
decide(result, "a process that is root")

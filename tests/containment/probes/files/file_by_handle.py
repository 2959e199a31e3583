"""Code cannot open a file by a handle, past every path."""
# covers: known failure: open_by_handle_at ("shocker")

import ctypes
import errno

from probe import decide_by_answer, syscall

handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + bytes(8))
AT_FDCWD = -100
decide_by_answer(syscall(304, AT_FDCWD, handle, 0), "a handle", (errno.EPERM,))

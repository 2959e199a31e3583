"""Code cannot give itself a capability."""
# covers: SandboxEval, dangerous operations; privilege escalation

import ctypes
import struct

from probe import decide, syscall

CAP_SYS_ADMIN = 1 << 21
header = ctypes.create_string_buffer(struct.pack("<II", 0x20080522, 0))
decide(syscall(126, header, ctypes.create_string_buffer(struct.pack("<6I", CAP_SYS_ADMIN, CAP_SYS_ADMIN, 0, 0, 0, 0))), "capset")

"""Code cannot install system call filters, whose memory no limit counts."""
# covers: known failure: memory for compiled filters is the whole machine's
# neighbors: they install filters, too
# gvisor: not run: gVisor is too slow at it for the time of the probe

import contextlib
import ctypes
import os
import struct

from probe import held, reached, stand, syscall

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER, SECCOMP_SET_MODE_FILTER, NEW_LISTENER = 22, 38, 2, 1, 8
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
# Allows everything.
program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
filtering = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)))
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
reading, writing = os.pipe()
if os.fork() == 0:
    # Not in the process that speaks: what is installed stays.
    installed = [
        libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(filtering)), 0, 0) == 0,
        syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, 0, filtering) == 0,
        syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, filtering) >= 0,
    ]
    os.write(writing, bytes(installed))
    os._exit(0)
answers = os.read(reading, 3)
with contextlib.suppress(ChildProcessError):
    os.wait()
stand()
if any(answers):
    reached(f"filters: by prctl, by seccomp, with a listener: {[bool(answer) for answer in answers]}")
held("none was installed")

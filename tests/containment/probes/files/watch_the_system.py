"""Code cannot watch who opens the programs that sandboxes and host share."""
# covers: SandboxEval, information exposure; what others do

import ctypes
import os

from probe import held, reached

libc = ctypes.CDLL(None, use_errno=True)
watcher = libc.inotify_init1(0)
IN_OPEN = 0x20
if watcher < 0 or libc.inotify_add_watch(watcher, b"/usr/bin", IN_OPEN) < 0:
    held(os.strerror(ctypes.get_errno()))
reached("a watch on /usr/bin")

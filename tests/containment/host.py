"""Stands for what else a user of the machine does: prints `fine` if it works as ever."""

import ctypes
import json
import os
import select
import socket
import struct
from itertools import chain, islice
from pathlib import Path

# Files of the image, which sandboxes have open as well.
library = Path(json.__file__).parent.parent
for path in chain.from_iterable(islice(library.rglob(kind), 400) for kind in ("*.py", "*.pyc")):
    path.read_bytes()
# Descriptors on their way, and watches.
null = os.open("/dev/null", os.O_RDONLY)
sender, receiver = socket.socketpair()
for _ in range(2):
    socket.send_fds(sender, [b"x"], [null] * 20)
poller = select.epoll()
for file in [os.eventfd(0) for _ in range(100)]:
    poller.register(file, select.EPOLLIN)
# A child with a filter that allows everything.
child = os.fork()
if child == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    filtering = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(program)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    installed = libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(filtering)), 0, 0)
    os._exit(0 if installed == 0 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "no filter can be installed"
print("fine")

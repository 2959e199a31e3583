"""Descriptors that code sends with its frames do not stay open in the host."""
# covers: known failure: descriptors passed to the host exhaust it
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import errno
import os
import socket

from forge import CHANNEL, frame

null = os.open("/dev/null", os.O_RDONLY)
greeting = frame({"type": "hello", "generation": 1, "pid": 1, "python": "3.13.0"})
with socket.socket(fileno=os.dup(CHANNEL)) as channel:
    for _ in range(8):
        try:
            socket.send_fds(channel, [greeting], [null] * 100)
        except OSError as error:
            # The limit on descriptors in flight is lower than 800 where sandboxes share a user id,
            # and a slow host reaches it before it reads.
            if error.errno != errno.ETOOMANYREFS:
                raise
            break

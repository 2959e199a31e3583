"""Code cannot hide more files than its limit in the buffers of sockets."""
# covers: known failure: descriptors in flight are not counted
# limits: {"open_files": 128}
# ends: completed
# gvisor: gVisor does not limit descriptors that are sent and not received; they take memory of the machine

import os
import socket

from probe import held, reached

flying = 0
null = os.open("/dev/null", os.O_RDONLY)
sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
sender.setblocking(False)
try:
    for _ in range(10):
        socket.send_fds(sender, [b"x"], [null] * 100)
        flying += 100
except OSError as error:
    held(f"{error} after {flying}")
finally:
    receiver.close()
reached(f"{flying} descriptors")

"""Code that fills sockets with descriptors leaves others theirs."""
# covers: known failure: descriptors in flight are counted for each user
# ends: completed
# neighbors: Linux compares what a user has on its way with the limit of whoever sends next
# gvisor: gVisor does not limit descriptors that are sent and not received; they take memory of the machine

import os
import socket

from probe import held, reached, stand

FURTHEST = 3000
flying, refused = 0, None
null = os.open("/dev/null", os.O_RDONLY)
sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
sender.setblocking(False)
try:
    while flying < FURTHEST:
        socket.send_fds(sender, [b"x"], [null] * 250)
        flying += 250
except OSError as error:
    refused = error
stand()
receiver.close()
if refused:
    held(f"{refused} after {flying}")
reached(f"{flying} descriptors")

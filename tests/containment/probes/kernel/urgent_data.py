"""Code cannot send urgent data over Unix sockets, whose code in the kernel has had holes."""
# covers: kernel surface of container escapes; Unix sockets
# also: without namespaces
# gvisor: not run: gVisor has sockets of its own

import socket

from probe import held, reached

one, other = socket.socketpair()
for send in (
    lambda: one.send(b"x", socket.MSG_OOB),
    lambda: one.sendmsg([b"x"], [], socket.MSG_OOB),
):
    try:
        send()
    except PermissionError:
        continue
    except OSError as error:
        reached(f"got past the filter: {error}")
    reached("urgent data")
held("the filter refuses it")

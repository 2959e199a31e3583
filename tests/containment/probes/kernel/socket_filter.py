"""Code cannot attach programs to sockets, whose memory no limit counts."""
# covers: known failure: memory for compiled filters is the whole machine's
# neighbors: they install filters, too

import contextlib
import ctypes
import errno
import socket
import struct

from probe import held, reached, stand

ATTACH_FILTER, ATTACH_BPF, ATTACH_REUSEPORT_CBPF, ATTACH_REUSEPORT_EBPF = 26, 50, 51, 52
LENGTH = 4000
# Conditions that lead nowhere, then "all of the packet".
program = ctypes.create_string_buffer(struct.pack("HBBI", 0x15, 0, 0, 1) * (LENGTH - 1) + struct.pack("HBBI", 0x06, 0, 0, 0xFFFF))
filtered = struct.pack("HxxxxxxQ", LENGTH, ctypes.addressof(program))
sockets = []


def attach() -> None:
    """Attaches one to each of two further sockets."""
    pair = socket.socketpair()
    sockets.append(pair)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, filtered)


attached = 0
with contextlib.suppress(OSError):
    while attached < 200:
        attach()
        attached += 2
stand()
if attached:
    reached(f"filters at {attached} sockets")
nothing = struct.pack("i", -1)
for option, given in ((ATTACH_BPF, nothing), (ATTACH_REUSEPORT_CBPF, filtered), (ATTACH_REUSEPORT_EBPF, nothing)):
    with socket.socketpair()[0] as end:
        try:
            end.setsockopt(socket.SOL_SOCKET, option, given)
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
        reached(f"option {option} got past the filter")
held("no program at any socket")

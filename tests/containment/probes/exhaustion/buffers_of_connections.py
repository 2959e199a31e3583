"""Code cannot fill the machine's memory for connections."""
# covers: SandboxEval, dangerous operations; memory that no cgroup counts
# limits: {"network": "loopback"}
# ordinary: without cgroups, only the limit of the whole machine bounds these buffers
# gvisor: gVisor holds what connections have not received in its own memory, which only the machine's cgroup limits

import contextlib
import socket

from probe import held, reached

MOST = 160 << 20
CHUNK = bytes(1 << 20)
total = 0
connections = []
listener = socket.create_server(("127.0.0.1", 0))
with contextlib.suppress(OSError):
    while total < MOST and len(connections) < 400:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
        connections.append((sender, receiver))
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                total += sender.send(CHUNK)
if total >= MOST:
    reached(f"{total >> 20} MiB in {len(connections)} connections")
held(f"{total >> 20} MiB in {len(connections)} connections")

"""Code cannot open more sockets than its limit."""
# covers: SandboxEval, dangerous operations; resource limits
# limits: {"open_files": 128}
# ends: limit_exceeded open_files

import socket

from probe import reached

pairs = [socket.socketpair() for _ in range(600)]
reached(f"{len(pairs)} pairs")

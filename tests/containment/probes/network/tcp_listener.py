"""Code cannot open a TCP port that others could connect to."""
# covers: SandboxEval, external communication; reverse shells

import socket

from probe import holds_if, reached

with holds_if(OSError):
    listener = socket.create_server(("127.0.0.1", 0))
    reached(listener.getsockname())

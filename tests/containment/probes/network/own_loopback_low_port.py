"""Code with a loopback cannot listen on a port that needs privileges."""
# covers: SandboxEval, dangerous operations; privileged ports
# limits: {"network": "loopback"}
# gvisor: gVisor lets every user listen on low ports of the machine's own loopback, where nothing else listens

import socket

from probe import holds_if, reached

with holds_if(OSError), socket.create_server(("127.0.0.1", 80)):
    reached("port 80")

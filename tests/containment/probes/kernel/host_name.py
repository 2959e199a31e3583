"""Code cannot rename the machine."""
# covers: SandboxEval, dangerous operations; system configuration

import socket

from probe import holds_if, reached

with holds_if(OSError):
    socket.sethostname("renamed")
    reached("renamed")

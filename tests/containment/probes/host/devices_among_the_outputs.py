"""A device among the outputs is not read."""
# covers: known failure: output directories with devices
# ends: completed
# delivers: nothing
# uncontained: it attacks a host that collects files, and nobody does

import contextlib
import os
import socket
import stat

with contextlib.suppress(OSError):
    os.mknod("/tmp/output/zero.csv", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
with contextlib.suppress(OSError):
    os.link("/dev/zero", "/tmp/output/endless.csv")
socket.socket(socket.AF_UNIX).bind("/tmp/output/socket.csv")

"""Code has inherited no descriptor of a file of the host."""
# covers: known failure: a leaked descriptor (runc, CVE-2024-21626)
# gvisor: the kernel was part of the snapshot, and drawing keeps fonts of the image open, which are read-only

import os
import stat

from probe import held, reached

for descriptor in range(3, 1024):
    try:
        kind = os.fstat(descriptor).st_mode
    except OSError:
        continue
    if stat.S_ISREG(kind) and os.readlink(f"/proc/self/fd/{descriptor}").startswith("/"):
        reached(f"descriptor {descriptor}")
held("there is none")

"""Code finds no device but those that hold nothing, and a name for its own terminal."""
# covers: SandboxEval, dangerous operations; device access
# gvisor: gVisor has devices of its own, such as /dev/fuse

import os
import stat

from probe import held, reached

harmless = {"null", "zero", "full", "random", "urandom", "tty"}
for name in os.listdir("/dev"):
    mode = os.lstat(f"/dev/{name}").st_mode
    if name not in harmless and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)):
        reached(name)
held("there is none")

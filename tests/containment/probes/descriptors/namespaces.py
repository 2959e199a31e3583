"""Code has inherited no descriptor of a namespace or a process."""
# covers: known failure: a leaked descriptor

import os

from probe import held, reached

for name in os.listdir("/proc/self/fd"):
    try:
        target = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        continue
    if target.startswith(("net:", "mnt:", "pid:", "user:", "ipc:", "uts:", "cgroup:", "anon_inode:[pidfd]")):
        reached(target)
held("there is none")

"""Code cannot make more folders than its disk may hold."""
# covers: CIRCLE, disk, indirect: a cache with a folder per key
# limits: {"inodes": 200}
# ends: limit_exceeded inodes
# gvisor: gVisor does not limit the number of files; they take memory of the machine

import os

from probe import reached

for number in range(2000):
    os.mkdir(f"{number}")
reached("2000 folders")

"""Code cannot make more files than its disk may hold."""
# covers: CIRCLE, disk, direct: inodes
# limits: {"inodes": 200, "files": 4}
# ends: limit_exceeded inodes
# gvisor: gVisor does not limit the number of files; they take memory of the machine

from pathlib import Path

from probe import reached

for number in range(2000):
    Path(f"{number}").touch()
reached("2000 files")

"""Code cannot make a kernel load a protocol family that nobody uses."""
# covers: kernel surface of container escapes (AX.25, CAN, TIPC and the like)

import errno

from probe import held, reached, syscall

for family in (3, 4, 5, 9, 21, 29, 30, 31, 33, 35, 36, 39, 41, 43, 45):
    result = syscall(41, family, 2, 0)
    if result != -errno.EPERM:
        reached(f"family {family} answered {result}")
held("no family answers")

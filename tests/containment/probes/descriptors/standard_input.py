"""Code reads nothing from its standard input."""
# covers: known failure: commands of the host on standard input

import os
import select

from probe import held, reached

target = os.readlink("/proc/self/fd/0")
if target != "/dev/null":
    reached(target)
if select.select([0], [], [], 0)[0] and os.read(0, 1):
    reached("a byte")
held("it is empty")

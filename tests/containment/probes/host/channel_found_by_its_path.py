"""A channel that code opens again through /proc gets it no further."""
# covers: known failure: forged frames on the kernel's descriptor, found through /proc/self/fd
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import os

from probe import held, reached

for name in os.listdir("/proc/self/fd"):
    if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
        try:
            os.open(f"/proc/self/fd/{name}", os.O_RDWR)
        except OSError as error:
            held(error)
reached("a second way to the channel")

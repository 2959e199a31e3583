"""A frame with a header of half a gigabyte is refused before it is read."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import struct

from forge import send

send(struct.pack(">II", 1 << 29, (1 << 29) - 4) + b" " * 100)

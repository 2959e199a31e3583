"""A frame that claims four gigabytes is refused before they are waited for."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import send

send(b"\xff\xff\xff\xff\x00\x00\x00\x10" + b"{}" * 1000)

"""Bytes on the kernel's channel that are no frame end the sandbox and nothing else."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import send

send(b"\x7f" * 64)

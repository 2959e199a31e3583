"""A frame whose parts are longer than itself is refused."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send

send(frame({"type": "done", "cell": 2, "outcome": "completed", "blobs": [1 << 62, 1 << 62]}))

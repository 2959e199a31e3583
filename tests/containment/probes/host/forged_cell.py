"""Frames that claim to belong to another cell are ignored."""
# covers: known failure: forged frames on the kernel's descriptor
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send

for cell in (0, 1, 3, 1 << 63):
    send(frame({"type": "done", "cell": cell, "outcome": "completed", "duration_us": 1, "outputs_dropped": 0, "rejections": []}))

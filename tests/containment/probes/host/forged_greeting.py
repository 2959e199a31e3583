"""A second greeting changes nothing."""
# covers: known failure: guest control channel abuse
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send

for _ in range(1000):
    send(frame({"type": "hello", "generation": 99, "pid": 1, "python": "3.13.0"}))

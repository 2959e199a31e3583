"""A cell cannot have the host read a path that it names."""
# covers: known failure: host code that opens paths of the guest
# ends: completed
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

from forge import frame, send
from probe import bait

send(frame({"type": "call", "call": 1, "method": "read", "params": {"path": bait.folder + "/secret"}}))

"""Code has inherited no socket that leads anywhere but the one that its cells come through, and its spare."""
# covers: known failure: guest control channel abuse

import os
import select
import stat

from probe import held, reached

for descriptor in range(1024):
    try:
        kind = os.fstat(descriptor).st_mode
    except OSError:
        continue
    if not stat.S_ISSOCK(kind) or descriptor in (3, 4):
        continue
    # One whose other end is closed is left over from the kernel's start.
    poll = select.poll()
    poll.register(descriptor, 0)
    if not any(events & select.POLLHUP for _, events in poll.poll(0)):
        reached(f"descriptor {descriptor}")
held("there is none")

"""Code has inherited no socket but the one that its cells come through."""
# covers: known failure: guest control channel abuse

import os
import stat

from probe import held, reached

for descriptor in range(1024):
    try:
        kind = os.fstat(descriptor).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(kind) and descriptor != 3:
        reached(f"descriptor {descriptor}")
held("there is none")

"""Code cannot reach the files that limit it."""
# covers: known failure: release_agent of cgroups

import os
from pathlib import Path

from probe import held, reached

for root, _, files in os.walk("/sys/fs/cgroup"):
    for name in files:
        if os.access(Path(root, name), os.W_OK):
            reached(Path(root, name))
held("there is no writable control group")

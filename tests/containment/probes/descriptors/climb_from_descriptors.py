"""Code cannot climb out of its tree from any descriptor that it has."""
# covers: known failure: a leaked descriptor (runc, CVE-2024-21626)

import os

from probe import bait, held, reached

for descriptor in range(256):
    try:
        opened = os.open(f"../../../../../..{bait.folder}/secret", os.O_RDONLY, dir_fd=descriptor)
    except OSError:
        continue
    reached(f"descriptor {opened} from {descriptor}")
held("no descriptor leads out")

"""A file that becomes a symbolic link while it is collected is not followed."""
# covers: known failure: races between looking and opening
# ends: completed
# uncontained: it attacks a host that collects files, and nobody does

import os
import time

from probe import bait

with open("/tmp/output/swapped", "w") as file:
    file.write("x" * 100)
os.symlink(bait.folder + "/secret", "/tmp/output/link")
if os.fork() == 0:
    # Goes on while the cell's files are collected.
    end = time.monotonic() + 3
    while time.monotonic() < end:
        os.rename("/tmp/output/swapped", "/tmp/output/kept")
        os.rename("/tmp/output/link", "/tmp/output/swapped")
        os.rename("/tmp/output/swapped", "/tmp/output/link")
        os.rename("/tmp/output/kept", "/tmp/output/swapped")
    os._exit(0)
time.sleep(0.05)

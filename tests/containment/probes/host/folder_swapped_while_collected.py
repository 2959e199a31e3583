"""A folder that becomes a symbolic link while it is collected is not followed."""
# covers: known failure: races between looking and opening
# ends: completed
# uncontained: it attacks a host that collects files, and nobody does

import os
import time

from probe import bait

os.mkdir("/tmp/output/folder")
with open("/tmp/output/folder/secret", "w") as file:
    file.write("x" * 100)
os.symlink(bait.folder, "/tmp/output/link")
if os.fork() == 0:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        os.rename("/tmp/output/folder", "/tmp/output/kept")
        os.rename("/tmp/output/link", "/tmp/output/folder")
        os.rename("/tmp/output/folder", "/tmp/output/link")
        os.rename("/tmp/output/kept", "/tmp/output/folder")
    os._exit(0)
time.sleep(0.05)

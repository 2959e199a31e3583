"""A symbolic link among the outputs is not followed."""
# covers: known failure: host code following sandbox symlinks
# ends: completed
# delivers: real.txt
# uncontained: it attacks a host that collects files, and nobody does

import os
from pathlib import Path

from probe import bait

os.symlink("/etc/passwd", "/tmp/output/passwd.txt")
os.symlink(bait.folder + "/secret", "/tmp/output/secret.txt")
Path("/tmp/output/real.txt").write_text("x")

"""Hard links among the outputs deliver what the sandbox may read, and nothing of the host."""
# covers: known failure: output directories with hard links
# ends: completed
# delivers: one.txt two.txt
# uncontained: it attacks a host that collects files, and nobody does

import contextlib
import os
from pathlib import Path

for path in ("/etc/passwd", "/usr/bin/env"):
    with contextlib.suppress(OSError):
        os.link(path, "/tmp/output/linked")
Path("/tmp/output/one.txt").write_text("x")
os.link("/tmp/output/one.txt", "/tmp/output/two.txt")

"""Files that may not be read keep nobody from the others."""
# covers: known failure: output directories with permissions
# ends: completed
# uncontained: it attacks a host that collects files, and nobody does

import os
from pathlib import Path

Path("/tmp/output/closed").mkdir()
Path("/tmp/output/closed/in.txt").write_text("x")
os.chmod("/tmp/output/closed", 0)
Path("/tmp/output/real.txt").write_text("x")
os.chmod("/tmp/output/real.txt", 0)

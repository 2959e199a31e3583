"""A FIFO among the outputs keeps nobody waiting."""
# covers: known failure: output directories with FIFOs
# ends: completed
# delivers: real.txt
# uncontained: it attacks a host that collects files, and nobody does

import os
from pathlib import Path

for number in range(20):
    os.mkfifo(f"/tmp/output/{number}.csv")
Path("/tmp/output/real.txt").write_text("x")

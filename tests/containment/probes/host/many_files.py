"""Tens of thousands of files among the outputs are counted and not delivered."""
# covers: known failure: output directories that never end
# limits: {"files": 3}
# ends: completed
# uncontained: it attacks a host that collects files, and nobody does

import os

for number in range(30_000):
    os.close(os.open(f"/tmp/output/{number}", os.O_CREAT | os.O_WRONLY))

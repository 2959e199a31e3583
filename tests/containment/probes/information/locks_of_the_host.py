"""Code does not see which files others have locked."""
# covers: SandboxEval, information exposure; what others do

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from probe import held, reached

# Somebody else holds a lock: outside there may be none, so the probe brings it along. Inside, own locks are all that may be seen.
holder = subprocess.Popen(
    [sys.executable, "-c", "import fcntl, sys; fcntl.flock(open('/etc/hosts'), 2); print(1, flush=True); sys.stdin.read()"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
assert holder.stdout is not None
holder.stdout.readline()
own = {os.getpid(), holder.pid}
lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
holder.kill()
holder.wait()
fcntl.flock(0, fcntl.LOCK_UN)
foreign = [line for line in lines if "->" not in line and int(line[4]) not in own]
if foreign:
    reached(foreign[0])
held("only its own")

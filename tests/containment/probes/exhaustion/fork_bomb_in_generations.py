"""Processes that start processes together stay within the limit."""
# covers: SandboxEval, dangerous operations; a fork bomb
# limits: {"processes": 24}
# ends: completed | limit_exceeded processes
# gvisor: gVisor counts the processes of a user later than it starts them, so that a few more run

import contextlib
import os
import time

from probe import held, reached

GENERATIONS = 6
ready, tell = os.pipe2(os.O_NONBLOCK)
first = os.getpid()
for _ in range(GENERATIONS):
    with contextlib.suppress(BlockingIOError):
        os.fork()
os.write(tell, b"x")
if os.getpid() != first:
    time.sleep(20)
    os._exit(0)
deadline, alive = time.monotonic() + 2, 0
while time.monotonic() < deadline and alive < 2**GENERATIONS:
    with contextlib.suppress(BlockingIOError):
        alive += len(os.read(ready, 1024))
    time.sleep(0.02)
if alive > 24:
    reached(f"{alive} processes")
held(f"{alive} processes")

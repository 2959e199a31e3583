"""Code cannot take more memory than its limit by spreading it over processes."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory | completed | raised OSError

import os
import signal
import time

from probe import held, reached

SIZE, CHILDREN = 48 << 20, 6
ready, tell = os.pipe()
children = []
for _ in range(CHILDREN):
    child = os.fork()
    if child == 0:
        block = b"x" * SIZE
        os.write(tell, b"x")
        time.sleep(30)
        os._exit(len(block) & 1)
    children.append(child)
os.close(tell)
alive = 0
deadline = time.monotonic() + 10
while alive < CHILDREN and time.monotonic() < deadline:
    alive += len(os.read(ready, 1))
    killed = [child for child in children if os.waitpid(child, os.WNOHANG)[0]]
    if killed:
        break
    time.sleep(0.2)
    killed = [child for child in children if os.waitpid(child, os.WNOHANG)[0]]
    if killed:
        break
for child in children:
    if child not in killed:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
if alive == CHILDREN and not killed:
    reached(f"{CHILDREN} times {SIZE >> 20} MiB")
held(f"{len(killed)} were killed, {alive} had their memory")

"""Code that watches as many files as it can takes nothing from others."""
# covers: known failure: what epoll watches is counted for each user
# ends: completed | limit_exceeded memory | kernel_lost
# neighbors: Linux counts watches of epoll for each user
# shared_user: Linux has one limit on watches for each user, and no filter can count them
# time: 240
# uncontained: only the runner knows whether it takes anything from others
# gvisor: not run: gVisor is too slow at it for the time of the probe

import contextlib
import os
import select
import signal
import time

from probe import bait, held, stand

FILES = 490
# So many watches are more than one user may have on a machine of 16 GiB.
PROCESSES = 24 if getattr(bait, "stands", False) else 1


def watch() -> None:
    """Watches each of many files by each of many pollers."""
    with contextlib.suppress(OSError):
        files = [os.eventfd(0) for _ in range(FILES)]
        pollers = [select.epoll() for _ in range(FILES)]
        for poller in pollers:
            for file in files:
                poller.register(file, select.EPOLLIN)
    os.write(writing, b"x")
    time.sleep(600)


reading, writing = os.pipe()
started = []
for _ in range(PROCESSES):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        watch()
    started.append(child)
for _ in started:
    os.read(reading, 1)
stand()
for child in started:
    os.kill(child, signal.SIGKILL)
held("whether others went on is for the runner to say")

"""A file that grows while it is collected is not read for ever."""
# covers: known failure: races between looking and reading
# limits: {"collected_file_bytes": 16777216}
# ends: completed
# uncontained: it attacks a host that collects files, and nobody does

import os
import time

log = open("/tmp/output/growing.log", "wb", buffering=0)
log.write(b"x" * 1000)
if os.fork() == 0:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        log.write(b"x" * 100_000)
        if log.tell() > 100 << 20:
            break
    os._exit(0)
time.sleep(0.02)

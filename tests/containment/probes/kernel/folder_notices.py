"""Code is not told of what others open in folders that it shares with them."""
# covers: SandboxEval, information exposure; what others do
# neighbors: they open what it watches

import fcntl
import json
import os
import signal
from pathlib import Path

from probe import held, reached, stand

DN_ACCESS_MODIFY_MULTISHOT = 0x80000003
signal.signal(signal.SIGIO, signal.SIG_IGN)
watched = []
for folder in ("/usr/bin", str(Path(json.__file__).parent), "."):
    try:
        fcntl.fcntl(os.open(folder, os.O_RDONLY), fcntl.F_NOTIFY, DN_ACCESS_MODIFY_MULTISHOT)
        watched.append(folder)
    except OSError as error:
        refusal = error
stand()
if watched:
    reached(f"notices of {watched}")
held(refusal)

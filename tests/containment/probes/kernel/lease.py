"""Code cannot take a lease on a file, which would make whoever else opens it wait."""
# covers: known failure: a lease on a shared file stops other sandboxes and the host
# neighbors: they open the image's files

import contextlib
import fcntl
import json
import os
from itertools import chain, islice
from pathlib import Path

from probe import held, reached, stand

own = Path("leased")
own.write_text("x")
leased = []
library = Path(json.__file__).parent.parent
# The library is large, and a machine that is emulated takes minutes to list it.
for path in (own, *chain.from_iterable(islice(library.rglob(kind), 400) for kind in ("*.py", "*.pyc"))):
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK if path == own else fcntl.F_RDLCK)
        leased.append(path)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
stand()
if leased:
    reached(f"leases on {len(leased)} files, {leased[0]} among them")
held("no lease on any file")

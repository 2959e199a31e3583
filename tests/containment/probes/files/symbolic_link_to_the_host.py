"""Code cannot read a file of the host through a symbolic link."""
# covers: SandboxEval, filesystem manipulation; links

import os
from pathlib import Path

from probe import bait, holds_if, reached

link = Path("link")
os.symlink(Path(bait.folder, "secret"), link)
with holds_if(OSError):
    reached(f"{len(link.read_bytes())} bytes")

"""Code cannot give a file to another user."""
# covers: SandboxEval, filesystem manipulation; ownership

import os
from pathlib import Path

from probe import holds_if, reached

Path("mine").write_text("x")
with holds_if(OSError):
    os.chown("mine", 1, 1)
    reached("a file of another user")

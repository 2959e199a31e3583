"""Code cannot replace a program that others run."""
# covers: SandboxEval, filesystem manipulation; trojan programs

import os
from pathlib import Path

from probe import holds_if, reached

with holds_if(OSError):
    Path("/usr/bin/new").write_text("#!/bin/sh\n")
    os.replace("/usr/bin/new", "/usr/bin/true")
    reached("a program of its own")

"""Code cannot give a program capabilities."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os
import struct
from pathlib import Path

from probe import holds_if, reached

Path("program").write_text("#!/bin/sh\n")
with holds_if(OSError):
    os.setxattr("program", "security.capability", struct.pack("<5I", 0x02000001, 0xFFFFFFFF, 0, 0, 0))
    reached("a program with every capability")

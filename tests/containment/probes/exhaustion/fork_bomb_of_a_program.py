"""A program that code starts cannot start more processes than the limit."""
# covers: SandboxEval, dangerous operations; a fork bomb by a subprocess
# limits: {"processes": 24}
# ends: completed | limit_exceeded processes

import subprocess
import sys

from probe import held, reached

BOMB = """
import os, time
for _ in range(60):
    if os.fork() == 0:
        os.close(1)
        os.close(2)
        time.sleep(20)
print("all")
"""
ran = subprocess.run([sys.executable, "-S", "-c", BOMB], capture_output=True, text=True, check=False)
if ran.stdout.strip() == "all":
    reached("60 processes")
held(ran.stderr)

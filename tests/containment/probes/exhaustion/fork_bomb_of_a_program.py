"""A program that code starts cannot start more processes than the limit."""
# covers: SandboxEval, dangerous operations; a fork bomb by a subprocess
# limits: {"processes": 48}
# ends: completed | limit_exceeded processes

import subprocess
import sys

from probe import held, reached

bomb = "import os, time\nfor _ in range(150):\n    if os.fork() == 0:\n        os.close(1)\n        os.close(2)\n        time.sleep(20)\nprint('all')"
ran = subprocess.run([sys.executable, "-S", "-c", bomb], capture_output=True, text=True, check=False)
if ran.stdout.strip() == "all":
    reached("150 processes")
held(ran.stderr)

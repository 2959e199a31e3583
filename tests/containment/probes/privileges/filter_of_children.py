"""A program that code starts runs under the same filter."""
# covers: known failure: a filter for the first process only

import subprocess
import sys

from probe import held, reached

# PR_GET_NO_NEW_PRIVS: not every kernel shows it in the file.
child = "import ctypes; print(open('/proc/self/status').read(), ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))"
ran = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
if "Seccomp:\t2" in ran.stdout and ran.stdout.endswith(" 1\n"):
    held("a filter, and no new privileges")
reached("a program without a filter")

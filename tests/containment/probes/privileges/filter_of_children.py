"""A program that code starts runs under the same filter."""
# covers: known failure: a filter for the first process only

import subprocess

from probe import held, reached

ran = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
if "Seccomp:\t2" in ran.stdout and "NoNewPrivs:\t1" in ran.stdout:
    held("a filter, and no new privileges")
reached("a program without a filter")

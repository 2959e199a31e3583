"""Code that waits for a program of its own does not keep its sandbox longer than its time."""
# covers: CIRCLE, cpu, indirect: a subprocess
# time: 0.5
# ends: interrupted | kernel_lost

import subprocess

from probe import reached

subprocess.run(["sleep", "3"], check=True)
reached("three seconds")

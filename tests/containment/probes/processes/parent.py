"""Code cannot learn who started it."""
# covers: SandboxEval, information exposure; processes
# gvisor: the parent is a process of ours in the machine, which code cannot signal

import os

from probe import held, reached

if os.getppid():
    reached(f"pid {os.getppid()}")
held("its parent is outside its world")

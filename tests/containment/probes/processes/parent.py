"""Code cannot learn who started it."""
# covers: SandboxEval, information exposure; processes

import os

from probe import held, reached

if os.getppid():
    reached(f"pid {os.getppid()}")
held("its parent is outside its world")

"""Code cannot gain privileges by running a program."""
# covers: SandboxEval, dangerous operations; set-user-id programs

from pathlib import Path

from probe import held, reached

if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text():
    held("no new privileges")
reached("programs may gain privileges")

"""Code does not learn where the kernel lies in memory."""
# covers: kernel surface of container escapes; exploit preparation

from pathlib import Path

from probe import held, holds_if, reached

with holds_if(OSError):
    for line in Path("/proc/kallsyms").read_text().splitlines()[:1000]:
        if int(line.split()[0], 16):
            reached(line)
    held("no address is told")

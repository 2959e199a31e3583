"""Code does not read how the machine's kernel was built."""
# covers: kernel surface of container escapes; exploit preparation

from pathlib import Path

from probe import held, holds_if, reached

with holds_if(OSError):
    # Some kernels do not tell; all tell their timers to root.
    for path in ("/proc/config.gz", "/proc/timer_list"):
        if Path(path).exists() and Path(path).read_bytes():
            reached(path)
    held("nothing tells")

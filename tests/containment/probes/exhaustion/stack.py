"""Code that runs out of its stack loses its kernel and nothing else."""
# covers: CIRCLE, memory, indirect: a recursive solution without its guard
# ends: kernel_lost | raised RecursionError | limit_exceeded memory
# uncontained: it ends its own process, with or without a sandbox

import sys

sys.setrecursionlimit(1 << 30)


class Deep:
    """Compares itself by comparing itself, through C."""

    def __getattr__(self, name: str) -> object:
        """Asks itself again."""
        return getattr(self, name + "x"[:0])


print(Deep().anything)

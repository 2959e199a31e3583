"""Code cannot have the disk before everybody else."""
# covers: CIRCLE, disk, direct

from probe import decide, syscall

WHO_PROCESS, REAL_TIME_CLASS = 1, 1 << 13
decide(syscall(251, WHO_PROCESS, 0, REAL_TIME_CLASS), "real-time disk access")

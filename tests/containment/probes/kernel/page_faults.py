"""Code cannot handle page faults of the kernel."""
# covers: kernel surface of container escapes; userfaultfd makes races easy to win

from probe import decide, syscall

decide(syscall(323, 0), "userfaultfd")

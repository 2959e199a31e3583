"""A filter's look at an argument cannot be deceived by the half of it that the kernel ignores."""
# covers: known failure: a filter that compares 64 bits where the kernel takes 32

from probe import decide, syscall

AF_INET, SOCK_STREAM = 2, 1
decide(syscall(41, 1 << 32 | AF_INET, SOCK_STREAM, 0), "a TCP socket")

"""Code cannot talk to the kernel's audit subsystem."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

AF_NETLINK, SOCK_RAW, NETLINK_AUDIT = 16, 3, 9
decide_by_answer(syscall(41, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT), "an audit socket")

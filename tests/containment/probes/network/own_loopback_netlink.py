"""Code with a loopback cannot ask the kernel for interfaces and routes."""
# covers: kernel surface of container escapes
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_NETLINK, SOCK_RAW, NETLINK_ROUTE = 16, 3, 0
decide_by_answer(syscall(41, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "a route socket")

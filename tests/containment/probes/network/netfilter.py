"""Code cannot open a socket to the packet filter."""
# covers: kernel surface of container escapes (nf_tables)

from probe import decide_by_answer, syscall

AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER = 16, 3, 12
decide_by_answer(syscall(41, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), "a netfilter socket")

"""Code with a loopback cannot talk to the packet filter of its network."""
# covers: kernel surface of container escapes (nf_tables)
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER = 16, 3, 12
decide_by_answer(syscall(41, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), "a netfilter socket")

"""Code with a loopback cannot use the protocol UDP-Lite."""
# covers: kernel surface: protocols that a filter forgets
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE = 2, 2, 136
decide_by_answer(syscall(41, AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE), "a UDP-Lite socket")

"""Code with a loopback cannot open a socket past the network stack."""
# covers: kernel surface of container escapes
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_XDP, SOCK_RAW = 44, 3
decide_by_answer(syscall(41, AF_XDP, SOCK_RAW, 0), "an XDP socket")

"""Code with a loopback cannot load the protocol SCTP."""
# covers: kernel surface: protocols in modules
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_INET, SOCK_STREAM, IPPROTO_SCTP = 2, 1, 132
decide_by_answer(syscall(41, AF_INET, SOCK_STREAM, IPPROTO_SCTP), "an SCTP socket")

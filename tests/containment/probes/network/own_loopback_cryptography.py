"""Code with a loopback cannot use the kernel's cryptography."""
# covers: kernel surface of container escapes (af_alg)
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_ALG, SOCK_SEQPACKET = 38, 5
decide_by_answer(syscall(41, AF_ALG, SOCK_SEQPACKET, 0), "a cryptography socket")

"""Code with a loopback cannot open a socket for shared memory connections."""
# covers: kernel surface: protocols that replace TCP
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_SMC, SOCK_STREAM = 43, 1
decide_by_answer(syscall(41, AF_SMC, SOCK_STREAM, 0), "an SMC socket")

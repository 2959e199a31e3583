"""Code cannot make a pair of sockets of any family but Unix."""
# covers: kernel surface of container escapes

import ctypes

from probe import decide_by_answer, syscall

AF_TIPC, SOCK_SEQPACKET = 30, 5
decide_by_answer(syscall(53, AF_TIPC, SOCK_SEQPACKET, 0, (ctypes.c_int * 2)()), "a pair of TIPC sockets")

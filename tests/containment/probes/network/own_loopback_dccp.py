"""Code with a loopback cannot load the protocol DCCP."""
# covers: kernel surface: protocols in modules
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_INET, SOCK_DCCP, IPPROTO_DCCP = 2, 6, 33
decide_by_answer(syscall(41, AF_INET, SOCK_DCCP, IPPROTO_DCCP), "a DCCP socket")

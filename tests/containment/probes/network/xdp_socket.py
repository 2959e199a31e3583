"""Code cannot open an express data path socket."""
# covers: kernel surface of container escapes

from probe import decide_by_answer, syscall

AF_XDP, SOCK_RAW = 44, 3
decide_by_answer(syscall(41, AF_XDP, SOCK_RAW, 0), "an XDP socket")

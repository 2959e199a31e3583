"""Code cannot make calls of the x32 architecture, whose numbers have one more bit."""
# covers: known failure: a filter that does not check the architecture

from probe import decide_by_answer, syscall

X32_BIT, SOCKET, AF_INET, SOCK_STREAM = 0x40000000, 41, 2, 1
decide_by_answer(syscall(X32_BIT | SOCKET, AF_INET, SOCK_STREAM, 0), "an x32 call")

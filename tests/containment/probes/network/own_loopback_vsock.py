"""Code with a loopback cannot open a socket to a hypervisor."""
# covers: escapes towards the host of a virtual machine
# limits: {"network": "loopback"}

from probe import decide_by_answer, syscall

AF_VSOCK, SOCK_STREAM = 40, 1
decide_by_answer(syscall(41, AF_VSOCK, SOCK_STREAM, 0), "a vsock")

"""Code cannot load a program into the kernel."""
# covers: kernel surface of container escapes; eBPF

from probe import decide_by_answer, syscall

decide_by_answer(syscall(321, -1, 0, 0), "bpf")

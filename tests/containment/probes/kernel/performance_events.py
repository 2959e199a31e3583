"""Code cannot count events of the machine."""
# covers: kernel surface of container escapes; perf

from probe import decide_by_answer, syscall

decide_by_answer(syscall(298, 0, 0, -1, -1, 0), "perf_event_open")

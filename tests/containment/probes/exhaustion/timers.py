"""Code cannot make timers without end."""
# covers: CIRCLE, cpu, indirect: schedules
# ends: completed
# ordinary: the limit on signals that wait belongs to the user, and is the user's own
# gvisor: gVisor does not limit timers; they take memory of the machine

import ctypes

from probe import held, reached, syscall

WANTED = 20_000
identity = ctypes.c_int()
made = 0
while made < WANTED and syscall(222, 1, 0, ctypes.byref(identity)) == 0:
    made += 1
for number in range(made):
    syscall(226, number)
if made == WANTED:
    reached(f"{made} timers")
held(f"refused after {made}")

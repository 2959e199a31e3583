"""Code cannot send a process of the host a signal with a value."""
# covers: SandboxEval, dangerous operations; killing processes

import ctypes

from probe import bait, decide, syscall

# The kernel fills nothing in: it takes signal 0 as a question.
decide(syscall(129, bait.bystander, 0, ctypes.create_string_buffer(b"\0" * 8 + b"\xff" * 4, 128)), "it could be signalled")

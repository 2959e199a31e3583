"""A cell that closes its own channel loses its kernel and nothing else."""
# covers: known failure: guest control channel abuse
# ends: kernel_lost
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import os

os.closerange(3, 64)

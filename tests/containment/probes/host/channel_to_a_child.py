"""A child that keeps the channel after the kernel's death keeps nobody waiting."""
# covers: known failure: guest control channel abuse
# ends: kernel_lost
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import os
import time

if os.fork() == 0:
    time.sleep(60)
    os._exit(0)
os._exit(3)

"""Half a frame does not keep the host waiting beyond the cell's time."""
# covers: known failure: forged frames on the kernel's descriptor
# time: 0.7
# ends: kernel_lost | interrupted | broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import time

from forge import done, send

send(done()[:20])
time.sleep(5)

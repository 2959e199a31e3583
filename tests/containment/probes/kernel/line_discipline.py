"""Code cannot load drivers through a terminal."""
# covers: known failure: line disciplines such as n_gsm, with errors that give control of the kernel

import fcntl
import struct

from probe import held, holds_if, reached

TIOCSETD, N_GSM0710 = 0x5423, 21
with holds_if(PermissionError):
    try:
        fcntl.ioctl(0, TIOCSETD, struct.pack("i", N_GSM0710))
    except PermissionError:
        raise
    except OSError as error:
        reached(f"the request reached the device: {error}")
held("nothing happened")

"""Code cannot type into a terminal."""
# covers: known failure: TIOCSTI puts commands into the shell of the operator

import fcntl

from probe import held, holds_if, reached

TIOCSTI = 0x5412
with holds_if(PermissionError):
    try:
        fcntl.ioctl(0, TIOCSTI, b"x")
    except PermissionError:
        raise
    except OSError as error:
        reached(f"the request reached the device: {error}")
held("nothing happened")

"""Code cannot paste into a virtual console."""
# covers: known failure: TIOCLINUX puts a selection into the console of the operator

import fcntl

from probe import held, holds_if, reached

TIOCLINUX = 0x541C
with holds_if(PermissionError):
    try:
        # Subcode 3 pastes what is selected; without a console, any answer but a refusal means that it was asked.
        fcntl.ioctl(0, TIOCLINUX, b"\x03")
    except PermissionError:
        raise
    except OSError as error:
        reached(f"the request reached the device: {error}")
held("nothing happened")

"""Two sandboxes do not share named pipes."""

import os
import stat


def leave(token: str) -> object:
    """Makes one and holds it open."""
    os.mkfifo(f"/tmp/{token}")
    return os.open(f"/tmp/{token}", os.O_RDWR)


def find(token: str) -> bool:
    """Looks for it."""
    return os.path.exists(f"/tmp/{token}") and stat.S_ISFIFO(os.stat(f"/tmp/{token}").st_mode)

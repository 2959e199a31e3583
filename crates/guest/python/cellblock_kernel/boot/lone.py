"""A kernel without a template: a separate Python process, for machines without namespaces.

It was confined before it was executed. The paths that other kernels have are directories of the host here.
"""

import os
import signal
import sys
from typing import NoReturn

from cellblock_kernel.boot import main, warm
from cellblock_kernel.cell import places

_CHANNEL = 3


def run(moved: dict[str, str]) -> NoReturn:
    """Serves the host on descriptor 3 until it closes the channel."""
    status = 71
    try:
        # A signal that arrives before the kernel has its own handler must not print a traceback of this file.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.set_inheritable(_CHANNEL, False)
        sys.argv = [""]
        places.move(moved)
        os.environ["XDG_CONFIG_HOME"] = os.path.join(os.environ["TMPDIR"], ".config")
        warm.warm([])
        main.serve(_CHANNEL)
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:
        os.write(2, f"kernel setup failed: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)

"""A kernel without a template: a separate Python process, for machines without namespaces.

It was confined before it was executed. The paths that other kernels have are directories of the host here.

In a machine that a snapshot is taken of, the first kernel imports the image's libraries before it says hello.
"""

import gc
import os
import signal
import sys
from typing import NoReturn

from cellblock_kernel.boot import after_fork, main, warm
from cellblock_kernel.cell import places

_CHANNEL = 3
# Enough for the interpreter to specialize the code that every cell uses.
_REHEARSALS = 8


def run(moved: dict[str, str], preload: list[str]) -> NoReturn:
    """Serves the host on descriptor 3 until it closes the channel."""
    status = 71
    try:
        # A signal that arrives before the kernel has its own handler must not print a traceback of this file.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.set_inheritable(_CHANNEL, False)
        sys.argv = [""]
        places.move(moved)
        os.environ["XDG_CONFIG_HOME"] = os.path.join(os.environ["TMPDIR"], ".config")
        failed = warm.warm(preload)
        if preload:
            _prepare(failed)
        main.serve(_CHANNEL, refresh=after_fork.refresh if preload else None, again=True)
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:
        os.write(2, f"kernel setup failed: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _prepare(failed: list[str]) -> None:
    """Does what a template does after its imports, as far as it does not concern forks."""
    from cellblock_kernel.boot import rehearsal

    for module in failed:
        os.write(2, f"cannot import {module}\n".encode())
    libraries = rehearsal.LIBRARY_CELLS if {"pandas", "matplotlib.pyplot"} <= sys.modules.keys() else ()
    rehearsal.rehearse(main.answer, (*rehearsal.CELLS * _REHEARSALS, *libraries * 2))
    gc.collect()
    gc.freeze()

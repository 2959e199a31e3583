"""Runs throwaway cells through the whole kernel, so that the first real cell finds specialized code and private
memory."""

import _socket
import os
import signal
import sys
import threading
from collections.abc import Callable

from cellblock_kernel.cell.channel import Channel, Closed
from cellblock_kernel.cell.interrupt import Gate

CELLS = ("1 + 1", "import sys", "def f(x):\n    return x\nf(2)", "print(end='')", "[][0]")
# A table and charts, for a template that has imported the required libraries. Small ones: large
# tables would start threads.
LIBRARY_CELLS = (
    "import pandas as pd\nframe = pd.DataFrame({'x': [1, 2, 3], 'y': [1.0, 4.0, 9.0], 's': list('abc')})\nframe",
    "frame.describe()",
    "import matplotlib.pyplot as plt\nframe.plot(x='x', y='y')\nplt.show()",
    "figure, axes = plt.subplots()\naxes.bar(['a', 'b'], [1, 2])\naxes.set_title('t')",
)


def rehearse(answer: Callable[[Channel, Gate], None], cells: tuple[str, ...], enough: Callable[[], bool] = bool) -> None:
    """Lets a separate kernel answer cells until there was `enough`; all its changes to the process are undone."""
    ours, theirs = _socket.socketpair()
    host = Channel(ours.detach(), Gate())
    feeder = threading.Thread(target=_feed, args=(host, cells, enough))
    try:
        feeder.start()
    except RuntimeError:
        # The process limit is reached. Cells do not depend on a rehearsal: the first one just takes
        # longer.
        host.release()
        theirs.close()
        return
    module = sys
    kept = {name: getattr(module, name) for name in ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")}
    first, path, environment = sys.modules["__main__"], list(sys.path), dict(os.environ)
    handler = signal.getsignal(signal.SIGINT)
    gate = Gate()
    channel = Channel(theirs.detach(), gate)
    try:
        answer(channel, gate)
    finally:
        # Collected now: later, a standby could mistake the cycles for a cell's.
        channel.release()
        for name, stream in kept.items():
            setattr(module, name, stream)
        sys.modules["__main__"] = first
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, handler)
        # Other processes may still hold the other end; this ends the feeder in any case.
        host.end(_socket.SHUT_RD)
        feeder.join()
        host.release()


def _feed(host: Channel, cells: tuple[str, ...], enough: Callable[[], bool]) -> None:
    """Sends the throwaway kernel one cell after another."""
    try:
        host.send({"type": "configure", "prelude": ["analysis", "documents"], "guard": "off", "limits": {}, "sys_path": []})
        for number, code in enumerate(cells):
            if enough():
                break
            host.send(
                {"type": "execute", "cell": number, "code": code, "name": "<cell>", "mode": "exec", "echo": True, "store": True}
            )
            while host.read()[0]["type"] != "done":
                pass
        host.end(_socket.SHUT_WR)
    except (Closed, OSError):
        pass

"""`multiprocessing` by `fork`: a hint where a worker waits for threads of Polars, which a forked process does not have.

Polars starts its threads when it is first used. A worker that is forked later and uses Polars waits for them forever. It cannot be
helped, so a thread of the worker says why it hangs.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from typing import Any

from cellblock_kernel.cell.on_import import on_import

_HINT = (
    "note: a process that multiprocessing forked waits for Polars' threads, which only its parent has, and will not end. "
    "Call Polars without processes (it uses all processors itself), or from threads (concurrent.futures.ThreadPoolExecutor)\n"
)
# A worker that computes this long is at different places.
_SECONDS = 1.0
_THREADS = "/proc/self/task"
_said: list[Any] = [None]


def install() -> None:
    """Watches workers that are forked after Polars has started its threads."""
    on_import("multiprocessing.popen_fork", _change)


def _change(module: Any) -> None:
    kind: Any = module.Popen
    original = kind._launch
    if hasattr(original, "watches"):
        return

    def launch(popen: Any, process: Any) -> None:
        if not _polars_has_threads():
            original(popen, process)
            return
        if _said[0] is None:
            # Workers share it: one of them says it.
            _said[0] = mmap.mmap(-1, 1)
        process._bootstrap = _watched(process._bootstrap, _said[0])
        try:
            original(popen, process)
        finally:
            del process._bootstrap

    launch.watches = True  # type: ignore[attr-defined]
    kind._launch = launch


def _watched(run: Any, said: mmap.mmap) -> Any:
    def bootstrap(*arguments: Any, **named: Any) -> Any:
        threading.Thread(target=_watch, args=(threading.main_thread().ident, said), daemon=True).start()
        return run(*arguments, **named)

    return bootstrap


def _watch(main: int, said: mmap.mmap) -> None:
    before: Any = None
    while True:
        time.sleep(_SECONDS)
        frame = sys._current_frames().get(main)
        place = None if frame is None else (frame, frame.f_lasti)
        if frame is not None and place == before and frame.f_globals.get("__name__", "").startswith("polars."):
            if not said[0]:
                said[0] = 1
                os.write(2, _HINT.encode())
            return
        before = place


def _polars_has_threads() -> bool:
    if "polars" not in sys.modules:
        return False
    for thread in os.listdir(_THREADS):
        try:
            with open(f"{_THREADS}/{thread}/comm") as file:
                if file.read().startswith("polars-"):
                    return True
        except OSError:
            continue  # it has ended meanwhile
    return False

"""Makes a forked kernel different from its siblings: new random states, names and keys.

The seed of `hash()` cannot be changed in a running interpreter: it is fixed per template, as `PYTHONHASHSEED`
would fix it. `secrets`, `uuid4` and `random.SystemRandom` ask the operating system and need no change.
"""

import atexit
import os
import sys
import time
from typing import Any


def refresh() -> None:
    """Reseeds every generator that the template may have initialized; called in the child, before its first
    cell."""
    # Handlers of libraries that the template imported could wait for threads that only the template
    # has.
    atexit._clear()
    seed()
    rename()
    modules: dict[str, Any] = sys.modules
    if sys.version_info >= (3, 14) and "multiprocessing" in modules:
        # A fork server would have to import a `__main__`, which is in no file.
        modules["multiprocessing"].set_start_method("fork", force=True)
    time.tzset()


def seed() -> None:
    """Reseeds the generators of `random`, numpy and torch."""
    modules: dict[str, Any] = sys.modules
    if "random" in modules:
        # From an int: bytes would be hashed first.
        modules["random"].seed(int.from_bytes(os.urandom(32), "big"))
    if "numpy.random" in modules:
        words = memoryview(os.urandom(64)).cast("I")
        modules["numpy.random"].seed(list(words))
    if "torch" in modules:
        modules["torch"].seed()


def rename() -> None:
    """Makes names and keys new, and OpenSSL's generator."""
    modules: dict[str, Any] = sys.modules
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = None
        modules["tempfile"].tempdir = None
    if "uuid" in modules:
        modules["uuid"]._node = None
        modules["uuid"]._last_timestamp = None
    if "_ssl" in modules or "_hashlib" in modules:
        # OpenSSL detects a fork by a new process ID, but the first kernel of every room has the
        # same one, often also the template's.
        try:
            import _ssl
        except ImportError:
            pass  # nothing in this image can use OpenSSL's generator
        else:
            _ssl.RAND_add(os.urandom(32), 32.0)
    if "multiprocessing.process" in modules:
        modules["multiprocessing.process"].current_process().authkey = os.urandom(32)

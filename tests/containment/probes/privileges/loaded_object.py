"""Unpickling what calls the system gets code nothing that the kernel does not allow."""
# covers: known failure: language-level escapes (pickle)

import os
import pickle

from probe import bait, holds_if, reached


class Opens:
    """Opens the secret when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        """Says what a loader is to call."""
        return os.open, (bait.folder + "/secret", os.O_RDONLY)


with holds_if(OSError):
    reached(f"descriptor {pickle.loads(pickle.dumps(Opens()))}")

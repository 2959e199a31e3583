"""Code cannot leave compiled bytecode beside the image's modules."""
# covers: known failure: a poisoned interpreter that outlives its session

import json
from pathlib import Path

from probe import holds_if, reached

with holds_if(OSError):
    Path(json.__file__).with_name("__pycache__").mkdir(exist_ok=True)
    Path(json.__file__).parent.joinpath("__pycache__", "left.pyc").write_bytes(b"x")
    reached("a new file")

"""Code cannot change a module that later sessions import."""
# covers: known failure: a poisoned interpreter that outlives its session

import json
from pathlib import Path

from probe import holds_if, reached

with holds_if(OSError):
    path = Path(json.__file__)
    path.write_text(path.read_text() + "\n")
    reached("a changed module")

"""Names that are bound before the first cell, as far as the template has imported their libraries."""

import datetime
import sys
from typing import Any

from cellblock_kernel import documents

_LIBRARIES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "alt": "altair", "pl": "polars"}


def names(preludes: list[str]) -> dict[str, Any]:
    """The names of the preludes asked for; a library that nobody has imported is left out, not imported."""
    bound: dict[str, Any] = {}
    for prelude in preludes:
        if prelude == "analysis":
            bound.update({name: sys.modules[module] for name, module in _LIBRARIES.items() if module in sys.modules})
            bound["datetime"] = datetime.datetime
            bound["timedelta"] = datetime.timedelta
            bound["timezone"] = datetime.timezone
        elif prelude == "documents":
            bound["read_pdf_text"] = documents.read_pdf_text
            bound["read_excel"] = documents.read_excel
            bound["read_pptx_text"] = documents.read_pptx_text
        else:
            raise ValueError(f"unknown prelude {prelude!r}: expected analysis or documents")
    return bound

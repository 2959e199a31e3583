"""Prepares a template: imports the image's libraries and runs their slow first calls, so that forked kernels
need not.

Nothing here may start a thread pool, as threads do not survive a fork: no polars, pyarrow or vl-convert computation.
"""

import gc
import importlib
import io
import os
import sys
from typing import Any

from cellblock_kernel.cell import interactive, pattern

# Parts of the standard library that cells often use and that are slow to import.
_STANDARD = (
    "asyncio", "concurrent.futures", "csv", "dataclasses", "decimal", "doctest", "fractions", "inspect", "multiprocessing.pool",
    "pickle", "pydoc", "sqlite3", "statistics", "subprocess", "tempfile", "threading", "unittest", "uuid", "zoneinfo",
)  # fmt: skip


def warm(modules: list[str]) -> list[str]:
    """Imports modules and warms them up; returns the failures as `module: reason`."""
    # The kernel's own modules were imported without a search for garbage, which would find nothing in them.
    gc.freeze()
    gc.enable()
    os.environ["MPLBACKEND"] = "agg"
    if not modules:
        return []
    pattern.compile_all()
    interactive.change_libraries()
    failed: list[str] = []
    for module in (*_STANDARD, *modules):
        try:
            importlib.import_module(module)
        except Exception as error:
            if module not in _STANDARD:
                failed.append(f"{module}: {type(error).__name__}: {error}")
    threads = _threads()
    for step in (_pandas, _matplotlib, _altair, _helpers):
        try:
            step()
        except Exception as error:
            failed.append(f"warming {step.__name__[1:]}: {type(error).__name__}: {error}")
    if _threads() > threads:
        failed.append(f"warming started threads: {threads} before, {_threads()} after")
    gc.collect()
    gc.freeze()
    return failed


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _pandas() -> None:
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None:
        frame = pandas.DataFrame({"group": ["a", "b", "a"], "value": [1.0, 2.5, 3.0]})
        frame.describe()
        frame.groupby("group")["value"].mean()
        repr(frame)


def _helpers() -> None:
    """The helpers of derivations, of which some need pandas."""
    importlib.import_module("cellblock_kernel.library.connectors")
    importlib.import_module("cellblock_kernel.library.derivation.result")
    if "pandas" in sys.modules:
        importlib.import_module("cellblock_kernel.timeseries")


def _matplotlib() -> None:
    plt: Any = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        matplotlib: Any = sys.modules["matplotlib"]
        matplotlib.use("agg")
        figure, axes = plt.subplots()
        axes.plot([0, 1, 2], [1.5, -2.0, 3.0], label="warm")
        axes.set_title("Title $x^2$")
        axes.legend()
        figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
        plt.close("all")


def _altair() -> None:
    altair: Any = sys.modules.get("altair")
    if altair is not None:
        data = altair.Data(values=[{"x": 1, "y": 2}])
        altair.Chart(data).mark_line().encode(x="x:Q", y="y:Q").to_dict()

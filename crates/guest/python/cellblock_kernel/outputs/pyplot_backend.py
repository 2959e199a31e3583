"""The matplotlib backend of cells that import matplotlib themselves: Agg, with a `show` that captures figures."""

from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

from cellblock_kernel.outputs.plot import show

__all__ = ["FigureCanvas", "FigureManager", "show"]
